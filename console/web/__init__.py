"""The console's pages: HTML made here, by templates, of the values that places answer.

H1  Pages only look: nothing is answered but GET and HEAD.
H2  Whatever comes from messages goes through templates that escape it; no page has a script of its
    own, and browsers are told to run none but ours (headers.py).
H3  Nothing is kept for who looks: a page is made of its address and of what the places tell.
"""
