"""The console's pages: HTML made here, by templates, of the values that places answer.

H1  Pages only look, by GET and HEAD. Only who is logged in posts anything, through one door
    (door.py), and only a form that is posted changes anything.
H2  Whatever comes from messages goes through templates that escape it; no page has a script of its
    own, and browsers are told to run none but ours (headers.py).
H3  Nothing is kept for who looks: a page is made of its address and of what the places tell. Who
    is logged in has a session, of which little is kept (sessions.py).
"""
