package inventory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"clustergym/traces/kube"
)

var (
	kubeNode = regexp.MustCompile(`"kind"\s*:\s*"Node(List)?"`)
	ofNodes  = regexp.MustCompile(`"nodes"\s*:\s*\[`)
)

func sniffJSON(head []byte) bool {
	head = bytes.TrimSpace(head)
	return len(head) > 0 && head[0] == '{'
}

func sniffKube(head []byte) bool { return sniffJSON(head) && kubeNode.Match(head) }

func sniffScontrolJSON(head []byte) bool {
	return sniffJSON(head) && ofNodes.Match(head) && bytes.Contains(head, []byte(`"gres"`))
}

const kubeCommand = "kubectl get nodes -o json"

// mostJSON bounds a document, of which a node takes some 10 kB.
const mostJSON = 1 << 30

// decode reads the whole document into v.
func (l *list) decode(r io.Reader, command string, v any) error {
	data, err := io.ReadAll(io.LimitReader(r, mostJSON))
	if err != nil {
		return err
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	d := json.NewDecoder(bytes.NewReader(data))
	err = d.Decode(v)
	at := d.InputOffset()
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return l.saying(line(data, int64(len(data))), "the JSON ends in the middle; use the whole output of %s", command)
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		return l.saying(line(data, kind.Offset), "%s is a JSON %s, and should be what %s prints", kind.Field, kind.Value,
			command)
	}
	return l.saying(line(data, at), "this is no JSON: %v; use the whole output of %s", err, command)
}

// line returns the line of an offset.
func line(data []byte, offset int64) int {
	n := min(max(0, int(offset)), len(data))
	return 1 + bytes.Count(bytes.TrimRight(data[:n], "\n"), []byte{'\n'})
}

type kubeObject struct {
	Kind string `json:"kind"`
	Meta struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Status struct {
		Capacity map[string]kube.Quantity `json:"capacity"`
	} `json:"status"`
	Items []kubeObject `json:"items"`
}

// kube reads what kubectl get nodes -o json prints: a list of nodes, or one node.
func (l *list) kube(r io.Reader) error {
	var all kubeObject
	if err := l.decode(r, kubeCommand, &all); err != nil {
		return err
	}
	items := all.Items
	if all.Kind == "Node" {
		items = []kubeObject{all}
	}
	how := kube.Default()
	for i := range items {
		o := &items[i]
		if o.Kind != "Node" && o.Kind != "" {
			continue
		}
		n := Node{}
		for _, name := range how.GPUs {
			q, there := o.Status.Capacity[name]
			if !there {
				continue
			}
			v, ok := q.Value()
			if !ok || v < 0 || v > maxGPUs-int64(n.GPUs) {
				return l.fault(1, "capacity of "+name, string(q),
					fmt.Sprintf("a whole number of GPUs of node %s, 0 to %d", clip(o.Meta.Name), maxGPUs))
			}
			n.GPUs += int(v)
		}
		if n.GPUs > 0 {
			n.GPUType = label(o.Meta.Labels, how.Types)
		}
		n.Rack = label(o.Meta.Labels, how.Racks)
		if v, ok := o.Status.Capacity["cpu"].Milli(); ok && v >= 0 {
			n.CPUs = float64(v) / 1000
		}
		if v, ok := o.Status.Capacity["memory"].Value(); ok && v >= 0 {
			n.MemGB = float64(v) / (1 << 30)
		}
		if strings.ContainsAny(o.Meta.Name, "[], ") || o.Meta.Name == "" {
			return l.fault(1, "metadata.name", o.Meta.Name, "the name of a node")
		}
		if err := l.add(1, "metadata.name", o.Meta.Name, n); err != nil {
			return err
		}
	}
	return l.done(1, kubeCommand)
}

// label returns the value of the first of keys that is there.
func label(labels map[string]string, keys []string) string {
	for _, k := range keys {
		if v := labels[k]; v != "" {
			return v
		}
	}
	return ""
}

// scontrolJSON reads what scontrol show node --json prints.
func (l *list) scontrolJSON(r io.Reader) error {
	var all struct {
		Nodes []struct {
			Name       string   `json:"name"`
			Gres       string   `json:"gres"`
			TRES       string   `json:"tres"`
			CPUs       number   `json:"cpus"`
			Memory     number   `json:"real_memory"`
			Partitions []string `json:"partitions"`
		} `json:"nodes"`
	}
	const command = scontrolCommand + " --json"
	if err := l.decode(r, command, &all); err != nil {
		return err
	}
	for _, n := range all.Nodes {
		err := l.scontrolNode(1, "name", n.Name, n.Gres, n.TRES, string(n.CPUs), string(n.Memory), n.Partitions)
		if err != nil {
			return err
		}
	}
	return l.done(1, command)
}

// number is a number of Slurm's JSON as text: 5, "5" or {"set": true, "number": 5}.
type number string

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	*n = number(strings.Trim(string(b), `"`))
	if len(b) == 0 || b[0] != '{' {
		return nil
	}
	var o struct {
		Set    bool        `json:"set"`
		Number json.Number `json:"number"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	if *n = ""; o.Set {
		*n = number(o.Number)
	}
	return nil
}
