"""Strict judges: what the real model APIs would refuse, told without calling them."""
