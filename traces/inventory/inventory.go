package inventory

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"clustergym/traces"
)

// Inventory is what a file says about a cluster. Either Nodes or VCs is empty.
type Inventory struct {
	// one of the names in the package's comment: openb, pai, spot, lingjun, philly, tiresias, helios, philly-vc, sinfo,
	// scontrol, kubernetes, topology
	Format string
	Nodes  []Node // in the order of the file
	VCs    []VC   // in the order of the file
}

// Node is one machine. A number of 0 and a name of "" mean that the format does not give it. The exception is GPUs,
// which is 0 for a machine without GPUs; see GivesGPUs.
type Node struct {
	Name     string
	Rack     string // top-of-rack switch
	Pod      string // aggregation switch above the rack
	Core     string // core switch above the pod
	GPUType  string // "" also for a machine without GPU
	GPUs     int
	GPUMemGB float64 // of each GPU, as the file counts GB
	CPUs     float64 // cores
	MemGB    float64 // main memory, as the file counts GB: GiB for the lists of Alibaba
	// Partitions are those of Slurm that the node is in, in the order of the file; nil = the file does not say.
	Partitions []string
}

// VC is a virtual cluster and the number of its nodes.
type VC struct {
	Name  string
	Nodes int
}

// GivesGPUs reports whether the format lists the GPUs of each node; lingjun and topology list hosts without them.
func (v *Inventory) GivesGPUs() bool { return v.Format != "lingjun" && v.Format != formatTopology }

// Own reports whether a cluster's own programs have printed the list, so that other things that they print have the
// same names of nodes.
func (v *Inventory) Own() bool {
	return slices.ContainsFunc(owns, func(o own) bool { return o.name == v.Format })
}

// Topology reports whether the list says where nodes are, and no more: Racked takes it.
func (v *Inventory) Topology() bool { return v.Format == formatTopology }

// format is a header and a function that reads a row below it.
type format struct {
	name     string
	required []string
	optional []string
	row      func(p *parser)
}

// formats are the known formats; no header matches two of them.
var formats = []format{
	{"openb", []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, nil, (*parser).openb},
	{"pai", []string{"machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"}, nil, (*parser).pai},
	{"spot", []string{"gpu_model", "gpu_capacity_num", "cpu_num", "node_name"}, nil, (*parser).spot},
	{"lingjun", []string{"ip", "DSW", "PSW", "ASW"}, nil, (*parser).lingjun},
	{"philly", []string{"machineId", "number of GPUs"}, []string{"single GPU mem", ""}, (*parser).philly},
	{"tiresias", []string{"num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node"}, nil,
		(*parser).tiresias},
	{"helios", []string{"", "num"}, nil, (*parser).vc},
	{"philly-vc", []string{"vc", "node num"}, nil, (*parser).vc},
}

// Sniff reports whether head, the first bytes of an unpacked file, is the beginning of an inventory.
func Sniff(head []byte) bool {
	if ownOf(head) != nil {
		return true
	}
	t, err := traces.NewTable(bytes.NewReader(head), "")
	return err == nil && find(t.Columns()) != nil
}

// find returns the format of a header, or nil.
func find(columns []string) *format {
	for i := range formats {
		f := &formats[i]
		lacks := func(c string) bool { return !slices.Contains(columns, c) }
		other := func(c string) bool { return !slices.Contains(f.required, c) && !slices.Contains(f.optional, c) }
		if !slices.ContainsFunc(f.required, lacks) && !slices.ContainsFunc(columns, other) {
			return f
		}
	}
	return nil
}

// headSize is how much of a file decides what its format is.
const headSize = 1 << 16

// Read reads r to its end. file is the name used in messages. An unknown header, a fault in a row, a repeated name and
// a file without rows are *traces.RowErrors.
func Read(r io.Reader, file string) (Inventory, error) {
	head := make([]byte, headSize)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return Inventory{}, err
	}
	head = head[:n]
	r = io.MultiReader(bytes.NewReader(head), r)
	if o := ownOf(head); o != nil {
		l := &list{file: file, inv: Inventory{Format: o.name}, at: map[string]int{}}
		if err := o.read(l, r); err != nil {
			return Inventory{}, err
		}
		return l.inv, nil
	}
	t, err := traces.NewTable(r, file)
	if err != nil {
		if e, ok := err.(*traces.RowError); ok && e.Value == "" {
			e.Want = wantHeader()
		}
		return Inventory{}, err
	}
	f := find(t.Columns())
	if f == nil {
		return Inventory{}, t.FaultIn("", strings.Join(t.Columns(), ","), wantHeader())
	}
	c := traces.NewCells(t, slices.Concat(f.required, f.optional))
	p := &parser{Cells: c, seen: map[string]bool{}, inv: Inventory{Format: f.name}}
	for p.Next() == nil {
		f.row(p)
	}
	if err := p.Err(); err != io.EOF {
		return Inventory{}, err
	}
	if len(p.inv.Nodes)+len(p.inv.VCs) == 0 {
		return Inventory{}, t.FaultIn("", "no rows", "at least one node or virtual cluster")
	}
	return p.inv, nil
}

// wantHeader names the columns of every format.
func wantHeader() string {
	var b strings.Builder
	b.WriteString("the header of a list of machines: ")
	for i, f := range formats {
		if i > 0 {
			b.WriteString("; or ")
		}
		b.WriteString(strings.TrimPrefix(strings.Join(f.required, ","), ","))
		b.WriteString(" (" + f.name + ")")
	}
	return b.String()
}
