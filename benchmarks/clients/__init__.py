"""Real coding agents, each in a home of its own and with a scripted model: what do they make of the gateway?"""
