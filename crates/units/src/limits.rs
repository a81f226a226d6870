//! Every bound of weir in one place. `docs/limits.md` shows this table to the operator, and
//! `cargo x tidy` holds the two together.

/// Frames in one burst: what `receive` and `transmit` hand over at once.
pub const BURST_FRAMES: usize = 64;
/// VLAN tags and SNAP headers that the parser reads in one frame.
pub const VLAN_TAGS: usize = 32;
/// IPv6 extension headers that the parser reads in one frame.
pub const IPV6_EXTENSIONS: usize = 8;
/// Levels of classes below the link.
pub const TREE_DEPTH: usize = 8;
/// Classes and subscribers of one link together.
pub const CLASSES: usize = 1 << 20;
/// Bytes of a policy file.
pub const POLICY_BYTES: u64 = 16 << 20;
/// Tokens of a policy file: names, values, signs and line ends.
pub const POLICY_TOKENS: usize = 1 << 20;
/// Parts of one dotted name in a policy file.
pub const POLICY_NAME_PARTS: usize = 32;
/// Bytes of a subscriber file.
pub const SUBSCRIBER_BYTES: u64 = 256 << 20;
/// Bytes of one row of a subscriber file.
pub const SUBSCRIBER_ROW_BYTES: usize = 16 << 10;
/// Fields of one row of a subscriber file.
pub const SUBSCRIBER_FIELDS: usize = 64;
/// Distinct mistakes by which the skipped rows of one subscriber file are grouped.
pub const SKIP_CAUSES: usize = 1_000;
/// Rules of `match` of one link.
pub const RULES: usize = 4_096;
/// Rules that one line of `match` with lists and negations stands for.
pub const RULE_ALTERNATIVES: usize = 256;
/// Raw byte matches of one link.
pub const RAW_MATCHES: usize = 64;
/// Raw byte matches of one link with subscribers that are known by their MAC address.
pub const RAW_BESIDE_MACS: usize = 40;
/// MAC addresses of the subscribers of one link.
pub const SUBSCRIBER_MACS: usize = 1 << 21;
/// Address blocks in all rules of one link together.
pub const PREFIXES: usize = 1 << 21;
/// Leaves that one `each` creates unless it says otherwise.
pub const EACH_LEAVES: u32 = 4_096;
/// Seconds without a frame after which a leaf created by `each` may be given to another host.
pub const EACH_IDLE_SECS: u64 = 300;
/// Hosts of one class that are remembered as waiting for approval of a leaf of their own.
pub const EACH_ASKERS: usize = 64;
/// MAC addresses that one link may name as routers.
pub const ROUTERS: usize = 64;
/// IPv4 addresses and IPv6 /64s of one MAC address within ten minutes that still count as ordinary
/// for one host.
pub const CROWD_ADDRESSES: usize = 4;
/// MAC addresses whose addresses are counted at the same time.
pub const CROWD_MACS: usize = 256;
/// Seconds for which a host must have been sending until it has a share of a leaf to itself.
pub const HOST_SETTLES_SECS: u64 = 1;
/// Hosts that are remembered as having been sending for that long.
pub const HOSTS_SETTLED: usize = 1 << 16;
/// MAC addresses with more addresses than that which `weir status` lists.
pub const CROWDS_TOLD: usize = 16;
/// Connections in the flow table unless the caller says otherwise.
pub const FLOWS: usize = 1 << 17;
/// Number of hosts that is assumed at least when the flow table and the table of fragments are
/// shared between hosts.
pub const FLOW_HOSTS_MIN: u64 = 64;
/// Seconds without a frame after which a connection is forgotten on which only one side has sent:
/// the WAN side, or the LAN side a few frames.
pub const FLOW_IDLE_UNANSWERED_SECS: u64 = 10;
/// Seconds without a frame after which a closed TCP connection is forgotten: long enough for the
/// last acknowledgement.
pub const FLOW_IDLE_CLOSED_SECS: u64 = 5;
/// Seconds without a frame after which any other connection is forgotten that is not open TCP. RFC
/// 4787 requires as much of an address translator.
pub const FLOW_IDLE_SECS: u64 = 120;
/// Seconds without a frame after which an open TCP connection is forgotten.
pub const FLOW_IDLE_TCP_SECS: u64 = 600;
/// Frames from the LAN side that keep a connection even if nobody answers.
pub const FLOW_FRAMES_ALIVE: u8 = 4;
/// Leaves, or slots of the flow table, that one call of `export` looks at; leaves and connections
/// in one encoded batch.
pub const EXPORTED_AT_ONCE: usize = 256;
/// Datagrams whose later fragments are assigned to the flow of the first.
pub const FRAGMENTED: usize = 1_024;
/// Seconds within which all fragments of a datagram must arrive (RFC 8200, section 4.5; RFC 791
/// says 15).
pub const FRAGMENTED_SECS: u64 = 60;
/// Bytes of one record of a capture.
pub const CAPTURE_RECORD_BYTES: usize = 256 << 10;
/// Interfaces in one section of a capture.
pub const CAPTURE_INTERFACES: usize = 4_096;
/// Problems of one file that are shown; further ones are only counted.
pub const PROBLEMS_SHOWN: usize = 100;
/// Errors of one policy that are kept, and as many warnings and notes; further ones are only
/// counted.
pub const PROBLEMS_KEPT: usize = 10_000;
/// Seconds without a frame after which a session gives up its place to one that waits.
pub const SESSION_IDLE_SECS: u64 = 5;
/// Acknowledgements that are held for pacing at the same time.
pub const HELD_ACKS: usize = 16_384;
/// Round trips that are timed at the same time.
pub const ROUND_TRIPS: usize = 256;
/// Bytes that a policed class may send at once.
pub const POLICE_BURST_BYTES: u64 = 1 << 30;
/// Frames that a simulated world holds at the same time.
pub const SIM_FRAMES: usize = 1 << 18;
/// Addresses that a simulated switch has learnt.
pub const SIM_STATIONS: usize = 1 << 16;
/// Delays that a simulated flow records individually.
pub const SIM_SAMPLES: usize = 1 << 22;
/// Bins of a simulated flow's series.
pub const SIM_BINS: usize = 1 << 20;
/// Nodes of a tree whose shares are computed, including the link and room for leaves that join.
pub const SHARE_NODES: u32 = 1 << 20;
/// The weight of a node relative to its siblings; with n siblings, each has at most 2^32/n.
pub const SHARE_WEIGHT: u32 = 1 << 20;
/// Events of leaves that join and leave, kept until they are fetched.
pub const SHARE_EVENTS: usize = 1_024;
/// Flows, in all leaves without queues, that exceed their share of a leaf at the same time.
pub const SHARE_FLOWS: usize = 1 << 14;
/// Bytes of the ring through which frames reach a packet port.
pub const PACKET_RING_BYTES: usize = 8 << 20;
/// Bytes that the kernel may hold for one socket of a port.
pub const SOCKET_BUFFER_BYTES: usize = 8 << 20;
/// Bytes of a frame that the kernel passes up unsegmented, with its metadata.
pub const LARGE_FRAME_BYTES: usize = 66 << 10;
/// File descriptors that one loop waits on.
pub const WAIT_FDS: usize = 64;
/// Bytes of an interface's MTU that weir accepts.
pub const PORT_MTU: usize = 9_216;
/// Slots of each ring between the kernel and an AF_XDP port, a power of two; each queue has as many
/// receive buffers.
pub const XSK_RING_FRAMES: usize = 2_048;
/// Free buffers of the pool that an AF_XDP port leaves to the others.
pub const XSK_RESERVE_FRAMES: usize = 256;
/// Receive queues of one interface.
pub const XSK_QUEUES: usize = 64;
/// IPv4 addresses of the box itself at which it is reachable through an AF_XDP port; as many of
/// IPv6.
pub const XDP_OWN_ADDRESSES: usize = 4;
/// ARP requests for the box per second that pass each queue of an AF_XDP port; as many IPv6
/// neighbour solicitations.
pub const XDP_ASKED_PER_SEC: u64 = 100;
/// Packets to the box itself per second that pass each queue of an AF_XDP port.
pub const XDP_TO_BOX_PER_SEC: u64 = 200;
/// Cores that one link is spread over.
pub const CORES: usize = 32;
/// Slots of each ring by which a core hands frames of one port to another core; a power of two.
pub const HANDOVER_FRAMES: usize = 1_024;
/// Slots of each ring by which a core passes free buffers to another that is short of them; a power
/// of two.
pub const SPARE_FRAMES: usize = 256;
/// Milliseconds without a poll of the daemon after which frames bypass it through the kernel.
pub const STALE_MS: u64 = 50;
/// Revisions of a policy that are kept on disk.
pub const REVISIONS: usize = 200;
/// Bytes of the policies and tables of all revisions of a link that are kept on disk.
pub const HISTORY_BYTES: u64 = 256 << 20;
/// Bytes of the file by which a weir that ends leaves its connections to the next one.
pub const HANDOVER_BYTES: u64 = 128 << 20;
/// Lines of difference that are shown for one change.
pub const CHANGES_SHOWN: usize = 100;
/// Seconds that a change may wait for confirmation.
pub const CONFIRM_SECS: u64 = 86_400;
/// Bytes of one request to a running link, which contains the policy and its subscribers.
pub const CONTROL_LINE_BYTES: usize = 16 << 20;
/// Control clients connected to one running link at the same time.
pub const CONTROL_CONNECTIONS: usize = 16;
/// Seconds that a control client may be silent, or take to send a request or to read a response.
pub const CONTROL_SILENCE_SECS: u64 = 60;
/// Seconds that a silent control client keeps its place while others wait for one.
pub const CONTROL_PLACE_SECS: u64 = 2;
/// Bytes of a request that is accepted while another large one is being received.
pub const CONTROL_SMALL_BYTES: usize = 64 << 10;
/// Milliseconds that a snapshot of a running link is served before another is made.
pub const SNAPSHOT_MS: u64 = 200;
/// Classes and leaves in one response of a running link.
pub const CONTROL_ROWS: usize = 20_000;
/// Bytes of one response of a running link.
pub const CONTROL_ANSWER_BYTES: usize = 64 << 20;
/// Classes that the metrics list individually.
pub const METRICS_CLASSES: usize = 1_000;
/// Bytes of a request for metrics.
pub const METRICS_REQUEST_BYTES: usize = 4_096;
/// Metrics readers that are served at the same time.
pub const METRICS_READERS: usize = 32;
/// Seconds that one metrics reader may take for its request.
pub const METRICS_REQUEST_SECS: u64 = 1;
/// Seconds that one metrics reader may take in all.
pub const METRICS_SECS: u64 = 5;
