"""What people look at: pages rendered here with Jinja2, that work without JavaScript and fetch nothing from elsewhere.

frame.py          what all pages share: rendering, navigation, errors as pages, sign-in checks, forms
filters.py        how times, amounts and JSON are written; where the marks of a plot stand
differences.py    two definitions side by side
templates/        one for each page
static/           the stylesheet, small modules of JavaScript, the icons

The page of a thing stands in the folder of that thing. Signing in and out is in ``toolsearch.service.keys.sign_in``.
"""
