//! Every bound of weir in one place. `docs/limits.md` shows this table to the operator, and
//! `cargo x tidy` holds the two together.

/// Frames in one burst: what `receive` and `transmit` hand over at once.
pub const BURST_FRAMES: usize = 64;
/// VLAN tags and SNAP headers that the parser follows in one frame.
pub const VLAN_TAGS: usize = 32;
/// IPv6 extension headers that the parser follows in one frame.
pub const IPV6_EXTENSIONS: usize = 8;
/// Levels of classes below the link.
pub const TREE_DEPTH: usize = 8;
/// Classes and subscribers of one link together.
pub const CLASSES: usize = 1 << 20;
/// Bytes of a policy file.
pub const POLICY_BYTES: u64 = 16 << 20;
/// Names, values, signs and line ends of a policy file: its tokens.
pub const POLICY_TOKENS: usize = 1 << 20;
/// Parts of one dotted name in a policy file.
pub const POLICY_NAME_PARTS: usize = 32;
/// Bytes of a subscriber file.
pub const SUBSCRIBER_BYTES: u64 = 256 << 20;
/// Bytes of one row of a subscriber file.
pub const SUBSCRIBER_ROW_BYTES: usize = 16 << 10;
/// Fields of one row of a subscriber file.
pub const SUBSCRIBER_FIELDS: usize = 64;
/// Kinds of mistakes that the skipped rows of one subscriber file are told apart by.
pub const SKIP_CAUSES: usize = 1_000;
/// Lines of `match` of one link.
pub const RULES: usize = 4_096;
/// Raw byte matches of one link.
pub const RAW_MATCHES: usize = 64;
/// Address blocks that all rules of one link name together.
pub const PREFIXES: usize = 1 << 21;
/// Leaves that one `each` makes unless it says otherwise.
pub const EACH_LEAVES: u32 = 4_096;
/// Seconds without a frame after which a leaf made by `each` may be given to another host.
pub const EACH_IDLE_SECS: u64 = 300;
/// Hosts of one class that are remembered as asking for a leaf of their own.
pub const EACH_ASKERS: usize = 64;
/// MACs that one link may name as routers.
pub const ROUTERS: usize = 64;
/// Addresses of one MAC within ten minutes that are one host's without a word, IPv4 addresses and
/// /64s of IPv6.
pub const CROWD_ADDRESSES: usize = 4;
/// MACs whose addresses are counted at once.
pub const CROWD_MACS: usize = 256;
/// Seconds for which a host has to have been sending until it has a part of a leaf to itself.
pub const HOST_SETTLES_SECS: u64 = 1;
/// Hosts that are remembered for that.
pub const HOSTS_SETTLED: usize = 1 << 16;
/// MACs with more addresses than that which are told of.
pub const CROWDS_TOLD: usize = 16;
/// Connections in the flow table unless the caller says otherwise.
pub const FLOWS: usize = 1 << 17;
/// A host has its part of the flow table, and of that of fragments, as if there were at least so
/// many hosts.
pub const FLOW_HOSTS_MIN: u64 = 64;
/// Seconds without a frame after which a connection is forgotten on which only one side has sent:
/// the WAN side, or the LAN side a few frames.
pub const FLOW_IDLE_UNANSWERED_SECS: u64 = 10;
/// Seconds without a frame after which a closed TCP connection is forgotten: long enough for the
/// last acknowledgement.
pub const FLOW_IDLE_CLOSED_SECS: u64 = 5;
/// Seconds without a frame after which any other connection is forgotten that is not open TCP.
/// RFC 4787 asks as much of an address translator.
pub const FLOW_IDLE_SECS: u64 = 120;
/// Seconds without a frame after which an open TCP connection is forgotten.
pub const FLOW_IDLE_TCP_SECS: u64 = 600;
/// Frames from the LAN side that keep a connection even if nobody answers.
pub const FLOW_FRAMES_ALIVE: u8 = 4;
/// Leaves, or places of the flow table, that one call of `export` looks at; leaves and connections
/// that one encoded batch tells of.
pub const EXPORTED_AT_ONCE: usize = 256;
/// Datagrams whose later fragments still find their flow.
pub const FRAGMENTED: usize = 1_024;
/// Seconds that a datagram may take to arrive in pieces (RFC 8200, section 4.5; RFC 791 says 15).
pub const FRAGMENTED_SECS: u64 = 60;
/// Bytes of one record of a capture.
pub const CAPTURE_RECORD_BYTES: usize = 256 << 10;
/// Interfaces in one section of a capture.
pub const CAPTURE_INTERFACES: usize = 4_096;
/// Problems of one file that are shown before the rest is only counted.
pub const PROBLEMS_SHOWN: usize = 100;
/// Errors of one policy that are kept, and as many warnings and notes; the rest is only counted.
pub const PROBLEMS_KEPT: usize = 10_000;
/// Seconds without a frame after which a session gives up its place to one that waits.
pub const SESSION_IDLE_SECS: u64 = 5;
/// Acknowledgements that wait for their moment at once.
pub const HELD_ACKS: usize = 16_384;
/// Round trips that are timed at once.
pub const ROUND_TRIPS: usize = 256;
/// Bytes that a policed class may send at once.
pub const POLICE_BURST_BYTES: u64 = 1 << 30;
/// Frames that a simulated world holds at once.
pub const SIM_FRAMES: usize = 1 << 18;
/// Addresses that a simulated switch has learnt.
pub const SIM_STATIONS: usize = 1 << 16;
/// Delays that a simulated flow remembers one by one.
pub const SIM_SAMPLES: usize = 1 << 22;
/// Bins of a simulated flow's series.
pub const SIM_BINS: usize = 1 << 20;
/// Nodes of a tree whose shares are computed, the link and room for leaves that join among them.
pub const SHARE_NODES: u32 = 1 << 20;
/// The weight of a node beside its siblings; of n siblings each has 2^32/n at most.
pub const SHARE_WEIGHT: u32 = 1 << 20;
/// Events of leaves that join and go, kept until they are fetched.
pub const SHARE_EVENTS: usize = 1_024;
/// Flows of all leaves without queues that are over their part of a leaf at the same time.
pub const SHARE_FLOWS: usize = 1 << 14;
/// Bytes of the ring by which frames come to a packet port.
pub const PACKET_RING_BYTES: usize = 8 << 20;
/// Bytes that the kernel may hold for one socket of a port.
pub const SOCKET_BUFFER_BYTES: usize = 8 << 20;
/// Bytes of a frame that the kernel hands up uncut, with what it says of it.
pub const LARGE_FRAME_BYTES: usize = 66 << 10;
/// Descriptors that one loop waits on.
pub const WAIT_FDS: usize = 64;
/// Bytes of an interface's MTU that weir accepts.
pub const PORT_MTU: usize = 9_216;
/// Slots of each ring between the kernel and an AF_XDP port, a power of two; as many buffers wait
/// in each queue to be received into.
pub const XSK_RING_FRAMES: usize = 2_048;
/// Free buffers of the pool that an AF_XDP port leaves to the others.
pub const XSK_RESERVE_FRAMES: usize = 256;
/// Receive queues of one port.
pub const XSK_QUEUES: usize = 64;
/// IPv4 addresses of the box itself that it is reached by through an AF_XDP port; as many of IPv6.
pub const XDP_OWN_ADDRESSES: usize = 4;
/// ARP requests for the box in a second that pass an AF_XDP port's queue; as many solicitations of
/// IPv6.
pub const XDP_ASKED_PER_SEC: u64 = 100;
/// Packets to the box itself in a second that pass an AF_XDP port's queue.
pub const XDP_TO_BOX_PER_SEC: u64 = 200;
/// Milliseconds without a turn of the daemon after which frames go past it through the kernel.
pub const STALE_MS: u64 = 50;
/// Revisions of a policy that are kept on disk.
pub const REVISIONS: usize = 200;
/// Bytes of the policies and tables of all revisions of a link that are kept on disk.
pub const HISTORY_BYTES: u64 = 256 << 20;
/// Lines of difference that are shown of one change.
pub const CHANGES_SHOWN: usize = 100;
/// Seconds that a change may wait for its confirmation.
pub const CONFIRM_SECS: u64 = 86_400;
/// Bytes of one request to a running link: a policy travels in it, its subscribers too.
pub const CONTROL_LINE_BYTES: usize = 16 << 20;
/// Programs that talk to one running link at once.
pub const CONTROL_CONNECTIONS: usize = 16;
/// Seconds that such a program may be silent, or take to send a request or to fetch an answer.
pub const CONTROL_SILENCE_SECS: u64 = 60;
/// Seconds that a silent program keeps its place while others wait for one.
pub const CONTROL_PLACE_SECS: u64 = 2;
/// Bytes of a request that may come while another large one is being received.
pub const CONTROL_SMALL_BYTES: usize = 64 << 10;
/// Milliseconds that a snapshot of a running link is told before another is made.
pub const SNAPSHOT_MS: u64 = 200;
/// Classes and leaves in one answer of a running link.
pub const CONTROL_ROWS: usize = 20_000;
/// Bytes of one answer of a running link.
pub const CONTROL_ANSWER_BYTES: usize = 64 << 20;
/// Classes that the metrics tell one by one.
pub const METRICS_CLASSES: usize = 1_000;
/// Bytes of a request for metrics.
pub const METRICS_REQUEST_BYTES: usize = 4_096;
/// Readers of metrics that are served at once.
pub const METRICS_READERS: usize = 32;
/// Seconds that one reader of metrics may take for its request.
pub const METRICS_REQUEST_SECS: u64 = 1;
/// Seconds that one reader of metrics may take in all.
pub const METRICS_SECS: u64 = 5;
