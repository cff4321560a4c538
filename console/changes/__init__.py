"""What can be changed in a place, by who may: topics, messages, offsets of groups, dead letters.

changer.py has what can be asked for; folder.py and cluster.py do it in a store's folder and in a
cluster. Nothing here knows users, roles or HTML: web/ asks only for those who may.

X1  What is shown before a change is what is done: a preview goes back with the order, and if it
    holds no more, nothing is done (ChangedMeanwhileError).
X2  What fails somewhere is told there: of each broker, and of each dead letter, by itself.
"""
