package inventory

import (
	"bytes"
	"fmt"

	"clustergym/traces"
)

// parser reads the rows of one format into inv. Its columns are the format's required columns, then its optional ones.
type parser struct {
	*traces.Cells
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
func (p *parser) name(col int) string {
	s := string(p.Text(col))
	if s == "" {
		p.Fail(col, "a name")
	} else if p.seen[s] {
		p.Fail(col, "each name once")
	}
	p.seen[s] = true
	return s
}

func (p *parser) gpus(col int) int {
	return int(p.Number(col, 0, 0, maxGPUs, fmt.Sprintf("a whole number of GPUs, 0 to %d", maxGPUs)))
}

// size reads an amount with up to three decimals.
func (p *parser) size(col int, want string) float64 {
	return float64(p.Number(col, 3, 0, maxUnits, want+", 0 or more")) / 1000
}

func (p *parser) node(n Node) { p.inv.Nodes = append(p.inv.Nodes, n) }

func (p *parser) openb() {
	p.node(Node{Name: p.name(0), CPUs: p.size(1, "thousandths of a core") / 1000, MemGB: p.size(2, "MiB") / 1024,
		GPUs: p.gpus(3), GPUType: string(p.Text(4))})
}

func (p *parser) pai() {
	n := Node{Name: p.name(0), GPUType: string(p.Text(1)), CPUs: p.size(2, "vCPU"), MemGB: p.size(3, "GiB"),
		GPUs: p.gpus(4)}
	if n.GPUs == 0 && n.GPUType == "CPU" {
		n.GPUType = ""
	}
	p.node(n)
}

func (p *parser) spot() {
	p.node(Node{Name: p.name(3), GPUType: string(p.Text(0)), GPUs: p.gpus(1), CPUs: p.size(2, "cores")})
}

func (p *parser) lingjun() {
	n := Node{Name: p.name(0), Core: string(p.Text(1)), Pod: string(p.Text(2)), Rack: string(p.Text(3))}
	for col := 1; col <= 3; col++ {
		if !p.Given(col) {
			p.Fail(col, "the name of a switch")
		}
	}
	p.node(n)
}

func (p *parser) philly() {
	n := Node{Name: p.name(0), GPUs: p.gpus(1)}
	if p.Has(2) {
		n.GPUMemGB = p.gb(2)
	}
	p.node(n)
}

// gb reads memory with its unit, such as "12GB".
func (p *parser) gb(col int) float64 {
	b, ok := bytes.CutSuffix(p.Text(col), []byte("GB"))
	v, _, err := traces.Decimal(string(bytes.TrimSpace(b)), 3)
	if !ok || err != nil || v < 0 || v > maxUnits {
		p.Fail(col, "GB of each GPU, as in 12GB")
	}
	return float64(v) / 1000
}

// tiresias makes the nodes of a row: racks and nodes are numbered through the file, from 0.
func (p *parser) tiresias() {
	racks := p.Number(0, 0, 1, maxNodes, "a whole number of switches, 1 or more")
	nodes := p.Number(1, 0, 1, maxNodes, "a whole number of nodes for each switch, 1 or more")
	if racks*nodes+int64(len(p.inv.Nodes)) > maxNodes {
		p.Fail(1, fmt.Sprintf("at most %d nodes in the whole file, as many for each switch", maxNodes))
	}
	n := Node{GPUs: p.gpus(2), CPUs: p.size(3, "cores of each node"), MemGB: p.size(4, "GB of each node")}
	if p.Err() != nil {
		return
	}
	for range racks {
		n.Rack = fmt.Sprintf("switch%d", p.racks)
		for range nodes {
			n.Name = fmt.Sprintf("node%d", len(p.inv.Nodes))
			p.node(n)
		}
		p.racks++
	}
}

func (p *parser) vc() {
	name := p.name(0)
	n := p.Number(1, 0, 0, maxNodes, fmt.Sprintf("a whole number of nodes, 0 to %d", maxNodes))
	p.inv.VCs = append(p.inv.VCs, VC{name, int(n)})
}
