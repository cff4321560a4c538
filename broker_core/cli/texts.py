"""What the commands say of themselves, in rich's markup; lines fit a terminal of 80 columns.

Each has examples, which a test runs on a store with a topic `orders` and a group `billing`, and
where they name a cluster on one with the same.
"""

ROOT = """RocketMQ for Spark people: stores of messages, and a broker for them.

A store is the directory of an Apache RocketMQ broker, or one that rocketpy
made. Commands about topics, groups and messages take a cluster as well.

[bold]Examples[/bold]

  rocketpy topic create shop-store orders           a store with a topic
  rocketpy send shop-store orders hello --tags new  a message
  rocketpy tail shop-store orders -f                messages, as they come
  rocketpy group lag shop-store --watch             the lag of groups
  rocketpy topic list rocketmq://127.0.0.1:9876     the same of a cluster
  rocketpy store stat shop-store                    what is in it
  rocketpy store verify shop-store                  is it sound?
  rocketpy doctor                                   is all here that it needs?

[bold]Exit codes[/bold]

    0  all is well
    1  something is wrong there: damage, loss, a fault
    2  it could not be done, or was asked for wrongly
   70  what nobody foresaw: please report it
  130  ended by Ctrl-C
  141  the reader of the output closed it

NO_COLOR=1 turns colours off. [bold]rocketpy --install-completion[/bold] has the shell
complete commands, options, stores, and the topics and groups of a store."""

STORE = """Look into a store directory, check it, and rebuild it.

No command needs a running broker. The first three only read, and may be used
while a broker runs.

[bold]Examples[/bold]

  rocketpy store stat shop-store
  rocketpy store verify shop-store && echo sound
  rocketpy store dump shop-store --topic orders --key o-1
  rocketpy store repair broken-store --to mended-store"""

STAT = """Show what is in a store: log, topics, groups, index, and whether it is in use.

The queues tell it all, so it takes no longer for a billion messages.

[bold]Examples[/bold]

  rocketpy store stat shop-store
  rocketpy store stat shop-store --queues
  rocketpy store stat shop-store --json | jq '.topics[] | {name, messages}'

[bold]Exit codes[/bold]: 0 shown, 2 not a store that can be read."""

VERIFY = """Check every byte of a store, and list all that is wrong.

Each line names the broken rule, the file, the offset and what is wrong
there; with [bold]--json[/bold] each is an object.

[bold]Examples[/bold]

  rocketpy store verify shop-store
  rocketpy store verify shop-store --json | jq -r .invariant | sort | uniq -c

[bold]Exit codes[/bold]: 0 sound, 1 problems were found, 2 it cannot be read."""

DUMP = """Print messages as JSON, one object per line.

Topic after topic, queue after queue; with [bold]--scan[/bold] in the order of the log.

[bold]Times[/bold] in the output are milliseconds since 1970. As a TIME give such, or
2026-11-15, 2026-11-15T23:53:01 (UTC), 2026-11-15T23:53:01+01:00.

[bold]The body[/bold] is text where its bytes are valid UTF-8: then "body_encoding" is
"utf-8". Else it is base64, and "body_encoding" says "base64". Bodies that
were compressed are unfolded.

[bold]Examples[/bold]

  rocketpy store dump shop-store --topic orders --limit 10
  rocketpy store dump shop-store --topic orders --tags 'paid || sent' \\
      --start-time 2026-11-15 --columns queue_id,queue_offset,keys,body
  rocketpy store dump shop-store --topic orders --key o-1
  rocketpy store dump lost-queues --scan | jq -r .body

[bold]Exit codes[/bold]: 0 printed, 1 damage was skipped, 2 it cannot be read."""

REPAIR = """Rebuild consume queues and index from the commit log.

Damaged bytes of the log are stepped over: sound messages keep their physical
and queue offsets, and what is lost is listed. In its place stands an
empty message with the property ROCKETPY_LOST, so that every consumer and
broker gets past it.

With [bold]--to[/bold] the store is only read, and may be in use. With [bold]--in-place[/bold]
nobody may have it open; the files that are replaced are kept in it, under
rocketpy/replaced-TIME. A repair that was interrupted is simply run again.

[bold]Examples[/bold]

  rocketpy store repair broken-store --to mended-store
  rocketpy store repair shop-store --in-place

[bold]Exit codes[/bold]: 0 nothing is lost, 1 something is, 2 not repaired."""

TOPIC = """Topics of a store or a cluster: which there are, new ones, and changes.

[bold]Examples[/bold]

  rocketpy topic list shop-store
  rocketpy topic list rocketmq://127.0.0.1:9876
  rocketpy topic describe shop-store orders
  rocketpy topic create shop-store orders --queues 8
  rocketpy topic update shop-store orders --perm r"""

TOPIC_LIST = """Show the topics of a store or a cluster, with their queues and messages.

[bold]Examples[/bold]

  rocketpy topic list shop-store
  rocketpy topic list rocketmq://127.0.0.1:9876
  rocketpy topic list shop-store --all
  rocketpy topic list shop-store --json | jq '.[].topic'

[bold]Exit codes[/bold]: 0 shown, 2 no store or cluster that can be read."""

TOPIC_DESCRIBE = """Show a topic: settings, each queue, and the groups that read it.

[bold]Examples[/bold]

  rocketpy topic describe shop-store orders
  rocketpy topic describe rocketmq://127.0.0.1:9876 orders
  rocketpy topic describe shop-store orders --json | jq '.queues[].messages'

[bold]Exit codes[/bold]: 0 shown, 2 no such topic, store or cluster."""

TOPIC_UPDATE = """Change a topic: its queues, or whether it may be read and written.

To have fewer queues, lower --write-queues; when what is in the others was
read, --read-queues. RocketMQ's numbers 6, 4, 2 are taken as PERM too. A topic is
closed by --perm none; its messages stay until they expire. In a cluster the
change is made on all brokers of the topic.

[bold]Examples[/bold]

  rocketpy topic update shop-store orders --perm r
  rocketpy topic update shop-store orders --write-queues 2
  rocketpy topic update rocketmq://127.0.0.1:9876 orders --perm rw

[bold]Exit codes[/bold]: 0 changed, 2 it could not be."""

TOPIC_CREATE = """Make a topic; one that exists keeps its queues, or gets more.

A store that is missing is made. In a cluster all its brokers get the topic,
each with N queues; the name servers know it when the command ends.

[bold]Examples[/bold]

  rocketpy topic create shop-store orders
  rocketpy topic create shop-store orders --queues 8
  rocketpy topic create rocketmq://127.0.0.1:9876 orders --queues 8

[bold]Exit codes[/bold]: 0 it is there, 2 it could not be made."""

GROUP = """Consumer groups: which there are, how far they are, setting them elsewhere.

[bold]Examples[/bold]

  rocketpy group list shop-store
  rocketpy group lag shop-store
  rocketpy group lag rocketmq://127.0.0.1:9876
  rocketpy group lag shop-store billing --watch
  rocketpy group reset shop-store billing orders --to earliest --dry-run"""

GROUP_LIST = """Show the consumer groups of a store or a cluster, with what each reads.

"Members" are streams that share the group's queues and live, in a cluster the
clients that consume now; "Retries" is how often a message is tried again
before it is a dead letter.

[bold]Examples[/bold]

  rocketpy group list shop-store
  rocketpy group list rocketmq://127.0.0.1:9876
  rocketpy group list shop-store --json | jq '.[] | select(.dead_letters > 0)'

[bold]Exit codes[/bold]: 0 shown, 2 no store or cluster that can be read."""

GROUP_CREATE = """Make a consumer group, or change one; what is not given stays.

Groups need not be made: the first to read or commit makes one as well.

[bold]Examples[/bold]

  rocketpy group create shop-store billing --retries 3
  rocketpy group create shop-store billing --no-consume
  rocketpy group create rocketmq://127.0.0.1:9876 billing --retries 3

[bold]Exit codes[/bold]: 0 it is there, 2 it could not be made."""

GROUP_LAG = """Show how many messages groups have not read, queue by queue.

"Oldest unread" is how long ago the next message to read was stored.

[bold]Examples[/bold]

  rocketpy group lag shop-store
  rocketpy group lag rocketmq://127.0.0.1:9876
  rocketpy group lag shop-store billing --watch
  rocketpy group lag shop-store --json | jq 'map(.behind) | add'

[bold]Exit codes[/bold]: 0 shown, 2 no such group, store or cluster."""

GROUP_RESET = """Set what a group reads next.

WHERE is earliest, latest, a time (the first message stored then or later:
2026-11-15, 2026-11-15T23:53:01Z, ms since 1970), or a number of messages
from where the group is: +100 skips, -100 reads again.

A streaming query goes by its own checkpoint: it asks the group only when it
is started with a new one. Consumers of a cluster that run now are told by
their brokers, which can tell them earliest, latest or a time, for all queues.

[bold]Examples[/bold]

  rocketpy group reset shop-store billing orders --to earliest --dry-run
  rocketpy group reset shop-store billing orders --to 2026-11-15T08:00:00Z
  rocketpy group reset shop-store billing orders --to -100 --queue 2
  rocketpy group reset rocketmq://127.0.0.1:9876 billing orders --to latest

[bold]Exit codes[/bold]: 0 done, 2 it could not be."""

SEND = """Store a message, or one for each line of stdin.

One with --delay-level or --deliver-at waits until a broker, a delivery service
or [bold]rocketpy job redeliver[/bold] brings it to its topic.

[bold]Examples[/bold]

  rocketpy send shop-store orders '{"id": 1}' --tags paid --key o-1
  rocketpy send shop-store orders hello -p region=eu --sharding-key o-1
  rocketpy send shop-store orders 'remind me' --delay-level 5
  rocketpy send rocketmq://127.0.0.1:9876 orders hello --tags paid
  cat orders.jsonl | rocketpy send shop-store orders --tags new

[bold]Exit codes[/bold]: 0 stored, 2 it could not be."""

TAIL = """Show the newest messages of a topic, and with [bold]-f[/bold] those that come.

A line has the time of storing, queue/offset, tag, keys and body; of a message
that was sent back, also the cause. In a cluster of several brokers the queue
has its broker before it.

[bold]Examples[/bold]

  rocketpy tail shop-store orders
  rocketpy tail shop-store orders -f --tags 'paid || sent'
  rocketpy tail rocketmq://127.0.0.1:9876 orders -f
  rocketpy tail shop-store orders --sql "region = 'eu'" -n 100
  rocketpy tail shop-store orders --key o-1
  rocketpy tail shop-store orders -n 1 --json | jq -r .body

[bold]Exit codes[/bold]: 0 shown, 2 no such topic, store or cluster, 130 ended by
Ctrl-C."""

TRACE = """Show who sent a message and who got it, as clients have traced it.

Clients trace to a topic of RocketMQ's if they are told to, and if the brokers
have it: [bold]traceTopicEnable=true[/bold]. The unique key is in receipts, and
consumers get it as msg_id.

[bold]Examples[/bold]

  rocketpy trace shop-store C00002025A030C387F445BD1D7C90000
  rocketpy trace shop-store C00002025A030C387F445BD1D7C90000 --json
  rocketpy trace rocketmq://127.0.0.1:9876 C00002025A030C387F445BD1D7C90000

[bold]Exit codes[/bold]: 0 shown, 1 nothing was traced of it, 2 no trace topic, no such
store or cluster."""

NAMESRV = """Run a name server, at which brokers register and clients ask for routes.

It listens on 127.0.0.1:9876 unless it is told otherwise, by options or by a
file like the [bold]namesrv.conf[/bold] of Apache's. Brokers of Apache's register with it as
well. Several may run side by side: give brokers and clients all of them.

It prints a line when it is ready, and stops at SIGTERM or Ctrl-C.

[bold]Examples[/bold]

  rocketpy namesrv --port 0
  rocketpy namesrv --port 0 --metrics-port 0
  rocketpy namesrv --bind 127.0.0.1 --port 0 --json
  rocketpy namesrv --print-config

[bold]Exit codes[/bold]: 0 stopped, 2 it could not listen, 130 ended by Ctrl-C."""

BROKER = """Run a broker, to which clients of RocketMQ send and from which they read.

It serves a store directory; jobs and notebooks may work on the same one by
path meanwhile. Settings are those of Apache's [bold]broker.conf[/bold], by their names. It
listens on 127.0.0.1:10911 unless it is told otherwise ([bold]brokerIP1[/bold]).

With [bold]--test[/bold] it runs a name server as well, both on free ports, with an empty
store that goes at the end. The first line is the address for clients.

With [bold]--metrics-port[/bold] Prometheus finds its metrics there, at /metrics; see also
[bold]rocketpy metrics[/bold].

It prints a line when it is ready, and stops at SIGTERM or Ctrl-C.

[bold]Examples[/bold]

  rocketpy broker --test
  rocketpy broker --store shop-store --port 0
  rocketpy broker --store shop-store --port 0 --metrics-port 0
  rocketpy broker --namesrv 127.0.0.1:9876 --store shop-store --print-config

[bold]Exit codes[/bold]: 0 stopped, 2 it could not start, 130 ended by Ctrl-C."""

METRICS = """Serve the metrics of a cluster to Prometheus, or those of a store directory.

Brokers may be Apache's, of 4.x or 5.x, or ours. Each scrape asks all of them
anew. One that does not answer has rocketpy_broker_up 0, and the others are
told all the same. Names are those of RocketMQ 5.x; with [bold]--exporter-names[/bold] those of
rocketmq-exporter as well. [bold]--queues[/bold] adds the lag of single queues.

It listens on 127.0.0.1:5557, prints what to scrape, and stops at SIGTERM or
Ctrl-C. With [bold]--once[/bold] it prints all metrics and ends.

[bold]Examples[/bold]

  rocketpy metrics rocketmq://127.0.0.1:9876 --once
  rocketpy metrics shop-store --once --queues
  rocketpy metrics rocketmq://127.0.0.1:9876 --once --exporter-names
  rocketpy metrics rocketmq://127.0.0.1:9876 --port 0
  rocketpy metrics shop-store --once --json | jq -r .name | sort -u

[bold]Exit codes[/bold]: 0 stopped or printed, 2 no store that can be read, or it could not
listen, 130 ended by Ctrl-C."""
