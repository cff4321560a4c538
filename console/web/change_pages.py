"""All kinds of changes, by the names in their addresses; and where in the menu they are."""

from __future__ import annotations

from rocketpy.console.web.change_groups import GROUP_CHANGES
from rocketpy.console.web.change_letters import LETTER_CHANGES
from rocketpy.console.web.change_messages import MESSAGE_CHANGES
from rocketpy.console.web.change_topics import TOPIC_CHANGES

CHANGES = {**TOPIC_CHANGES, **MESSAGE_CHANGES, **GROUP_CHANGES, **LETTER_CHANGES}
CHANGED = {
    **dict.fromkeys(TOPIC_CHANGES, "topics"),
    **dict.fromkeys(MESSAGE_CHANGES, "messages"),
    **dict.fromkeys(GROUP_CHANGES, "groups"),
    **dict.fromkeys(LETTER_CHANGES, "dead-letters"),
}
