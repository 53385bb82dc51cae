// Package observe has what Prometheus and Grafana need to watch a lab: the metrics that the
// controller serves, alert rules, and a dashboard. The names are stable.
package observe

// Type is a metric's type in Prometheus' text format.
type Type string

// The types.
const (
	Gauge   Type = "gauge"
	Counter Type = "counter"
)

// Metric is one metric of the controller.
type Metric struct {
	Name   string
	Type   Type
	Help   string
	Labels []string // besides LabelLab, which all have
}

// LabelLab is the label with the lab's name.
const LabelLab = "lab"

// The metrics of a lab. Links have the labels a and b, NODE:INTERFACE of their ends as the
// topology writes them; traffic has from and to instead.
var (
	NodeInfo     = Metric{"c9s_node_info", Gauge, "1 for each node, with its kind, Pod and worker.", []string{"node", "kind", "pod", "worker"}}
	NodeReady    = Metric{"c9s_node_ready", Gauge, "1 while a node is ready.", []string{"node"}}
	NodeState    = Metric{"c9s_node_state", Gauge, "1 for the state that a node is in.", []string{"node", "state"}}
	NodeRestarts = Metric{"c9s_node_restarts_total", Counter, "Restarts of a node's container in its present Pod.", []string{"node"}}
	LinkUp       = Metric{"c9s_link_up", Gauge, "1 while a link is up.", []string{"a", "b"}}
	LinkInfo     = Metric{"c9s_link_info", Gauge, "1 for each link, with its datapath.", []string{"a", "b", "datapath"}}
	LinkImpaired = Metric{"c9s_link_impaired", Gauge, "1 while an impairment is set at either end of a link.", []string{"a", "b"}}
	LinkRTT      = Metric{"c9s_link_rtt_seconds", Gauge, "Round-trip time of a link's heartbeats.", []string{"a", "b"}}
	LinkLoss     = Metric{"c9s_link_loss_ratio", Gauge, "Share of a link's heartbeats that were lost, 0 to 1, at the end that lost more.", []string{"a", "b"}}
	LinkDropped  = Metric{"c9s_link_dropped_frames_total", Counter, "Frames that a link could not carry since its sidecars started, without those that an impairment dropped.", []string{"a", "b"}}
	LinkBytes    = Metric{"c9s_link_bytes_total", Counter, "Bytes that a link carried in one direction since its sidecars started.", []string{"from", "to"}}
)

// Metrics are all of a lab.
func Metrics() []Metric {
	return []Metric{NodeInfo, NodeReady, NodeState, NodeRestarts, LinkUp, LinkInfo, LinkImpaired, LinkRTT, LinkLoss, LinkDropped, LinkBytes}
}
