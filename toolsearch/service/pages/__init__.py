"""What people look at: pages rendered here with Jinja2, that work without JavaScript and fetch nothing from elsewhere.

frame.py          rendering, and what surrounds every page: navigation, switch between light and dark, files
visits.py         who looks: a browser that has signed in, and what its key allows
sign_in.py        signing in with an API key, and out
routing.py        routes of pages: errors as pages, forms that another site cannot send
templates/        one for each page
static/           the stylesheet, small modules of JavaScript, the icons
"""
