"""What administers a cluster: plain classes that wait, one for each subject. See faces/admin.py."""
