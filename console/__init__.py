"""A console for the browser: what is in stores and clusters, page by page. It looks, and only that.

answers.py has the values of which pages are made, reader.py what can be asked of a place; folder.py
and cluster.py answer it for a store's folder and for a cluster. watch.py looks at a place time and
again, place.py puts it all together. Only web/ knows HTML and HTTP.
"""
