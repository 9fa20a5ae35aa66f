package inventory

import (
	"bytes"
	"fmt"

	"clustergym/traces"
)

// parser reads the rows of one format into inv. at holds the indices of the format's required columns, then those of
// its optional columns; -1 = absent.
type parser struct {
	*traces.Table
	at    []int
	seen  map[string]bool
	racks int // racks made so far, for formats in which a row is several racks
	inv   Inventory
}

// Bounds far beyond any real cluster, so that a mistyped number cannot fill the memory.
const (
	maxNodes = 1 << 20
	maxGPUs  = 1 << 16
	maxUnits = 1 << 42
)

// name reads the column that identifies rows.
func (p *parser) name(i int) (string, error) {
	s := string(p.Text(p.at[i]))
	if s == "" {
		return "", p.Fault(p.at[i], "a name")
	}
	if p.seen[s] {
		return "", p.Fault(p.at[i], "each name once")
	}
	p.seen[s] = true
	return s, nil
}

func (p *parser) gpus(i int) (int, error) {
	v, err := p.Number(p.at[i], 0, 0, maxGPUs, fmt.Sprintf("a whole number of GPUs, 0 to %d", maxGPUs))
	return int(v), err
}

func (p *parser) positive(i int, want string) (int64, error) {
	return p.Number(p.at[i], 0, 1, maxNodes, want)
}

// size reads an amount with up to three decimals.
func (p *parser) size(i int, want string) (float64, error) {
	v, err := p.Number(p.at[i], 3, 0, maxUnits, want+", 0 or more")
	return float64(v) / 1000, err
}

// node appends a node unless reading one of its cells gave an error.
func (p *parser) node(n Node, errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	p.inv.Nodes = append(p.inv.Nodes, n)
	return nil
}

func (p *parser) openb() error {
	name, err := p.name(0)
	if err != nil {
		return err
	}
	cpu, e1 := p.size(1, "thousandths of a core")
	mem, e2 := p.size(2, "MiB")
	gpus, e3 := p.gpus(3)
	return p.node(Node{Name: name, GPUType: string(p.Text(p.at[4])), GPUs: gpus, CPUs: cpu / 1000, MemGB: mem / 1024}, e1, e2, e3)
}

func (p *parser) pai() error {
	name, err := p.name(0)
	if err != nil {
		return err
	}
	cpu, e1 := p.size(2, "vCPU")
	mem, e2 := p.size(3, "GiB")
	gpus, e3 := p.gpus(4)
	kind := string(p.Text(p.at[1]))
	if gpus == 0 && kind == "CPU" {
		kind = ""
	}
	return p.node(Node{Name: name, GPUType: kind, GPUs: gpus, CPUs: cpu, MemGB: mem}, e1, e2, e3)
}

func (p *parser) spot() error {
	name, err := p.name(3)
	if err != nil {
		return err
	}
	gpus, e1 := p.gpus(1)
	cpu, e2 := p.size(2, "cores")
	return p.node(Node{Name: name, GPUType: string(p.Text(p.at[0])), GPUs: gpus, CPUs: cpu}, e1, e2)
}

func (p *parser) lingjun() error {
	name, err := p.name(0)
	if err != nil {
		return err
	}
	for _, i := range []int{1, 2, 3} {
		if !p.Given(p.at[i]) {
			return p.Fault(p.at[i], "the name of a switch")
		}
	}
	return p.node(Node{Name: name, Core: string(p.Text(p.at[1])), Pod: string(p.Text(p.at[2])), Rack: string(p.Text(p.at[3]))})
}

func (p *parser) philly() error {
	name, err := p.name(0)
	if err != nil {
		return err
	}
	gpus, err := p.gpus(1)
	if err != nil || p.at[2] < 0 {
		return p.node(Node{Name: name, GPUs: gpus}, err)
	}
	mem, err := p.gb(p.at[2])
	return p.node(Node{Name: name, GPUs: gpus, GPUMemGB: mem}, err)
}

// gb reads memory with its unit, such as "12GB".
func (p *parser) gb(col int) (float64, error) {
	const want = "GB of each GPU, as in 12GB"
	b, ok := bytes.CutSuffix(p.Text(col), []byte("GB"))
	if !ok {
		return 0, p.Fault(col, want)
	}
	v, _, err := traces.Decimal(string(bytes.TrimSpace(b)), 3)
	if err != nil || v < 0 || v > maxUnits {
		return 0, p.Fault(col, want)
	}
	return float64(v) / 1000, nil
}

// tiresias makes the nodes of a row: racks and nodes are numbered through the file, from 0.
func (p *parser) tiresias() error {
	racks, err := p.positive(0, "a whole number of switches, 1 or more")
	if err != nil {
		return err
	}
	nodes, err := p.positive(1, "a whole number of nodes for each switch, 1 or more")
	if err != nil {
		return err
	}
	if racks*nodes+int64(len(p.inv.Nodes)) > maxNodes {
		return p.Fault(p.at[1], fmt.Sprintf("at most %d nodes in the whole file, as many for each switch", maxNodes))
	}
	gpus, err := p.gpus(2)
	if err != nil {
		return err
	}
	cpu, err := p.size(3, "cores of each node")
	if err != nil {
		return err
	}
	mem, err := p.size(4, "GB of each node")
	if err != nil {
		return err
	}
	for range racks {
		rack := fmt.Sprintf("switch%d", p.racks)
		for range nodes {
			p.inv.Nodes = append(p.inv.Nodes, Node{Name: fmt.Sprintf("node%d", len(p.inv.Nodes)), Rack: rack, GPUs: gpus, CPUs: cpu, MemGB: mem})
		}
		p.racks++
	}
	return nil
}

func (p *parser) vc() error {
	name, err := p.name(0)
	if err != nil {
		return err
	}
	n, err := p.Number(p.at[1], 0, 0, maxNodes, fmt.Sprintf("a whole number of nodes, 0 to %d", maxNodes))
	if err != nil {
		return err
	}
	p.inv.VCs = append(p.inv.VCs, VC{name, int(n)})
	return nil
}
