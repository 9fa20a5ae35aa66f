package onnx

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/nets/onnx"
)

// The names that inputs and outputs are known by; the first of each is what exports use.
var (
	maskNames        = []string{"action_mask", "action_masks", "mask"}
	actionNames      = []string{"action", "actions"}
	logitNames       = []string{"logits"}
	probabilityNames = []string{"probabilities", "probs"}
	valueNames       = []string{"q", "q_values"}
)

// choose finds the outputs that can decide, the one to be preferred first: with agents.AsGiven the action itself, else
// what the rule applies to. The action comes before values, from which it follows by the only rule that they have.
func choose(m *onnx.Model, s env.Spec, r agents.Rule) (all []result, err error) {
	outs := m.Graph.Outputs
	if len(s.Action.Sizes) > 0 && len(s.Action.Low) > 0 {
		return nil, fmt.Errorf("%s has actions with both indices and numbers, which no model is played with", s.ID)
	}
	add := func(names []string, kind agents.ScoreKind) {
		if kind != "" && len(s.Action.Sizes) == 0 {
			return
		}
		for _, name := range names {
			if slices.ContainsFunc(outs, func(v onnx.Value) bool { return v.Name == name }) {
				all = append(all, result{name: name, kind: kind})
				return
			}
		}
	}
	if r == agents.AsGiven {
		add(actionNames, "")
	}
	add(logitNames, agents.Logits)
	add(probabilityNames, agents.Probabilities)
	if r != agents.AsGiven {
		add(actionNames, "")
	}
	add(valueNames, agents.Values)
	if len(all) == 0 && len(outs) == 1 {
		all = []result{{name: outs[0].Name}}
		if outs[0].Type == onnx.Float32 && len(s.Action.Sizes) > 0 {
			all[0].kind = unnamed(m)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf(
			"none of the outputs %s is called action, logits, probabilities or q, so it is not known which one decides",
			values(outs))
	}
	return all, nil
}

// unnamed returns what the numbers of a model's only output are, whose name does not say it: probabilities if they come
// from a softmax, and else they are taken as values, because any numbers have a largest one.
func unnamed(m *onnx.Model) agents.ScoreKind {
	name := m.Graph.Outputs[0].Name
	for i := len(m.Graph.Nodes) - 1; i >= 0; i-- {
		n := &m.Graph.Nodes[i]
		if !slices.Contains(n.Outputs, name) {
			continue
		}
		switch axis := n.Attribute("axis"); {
		case n.Op == "Identity" && len(n.Inputs) == 1:
			name = n.Inputs[0]
			continue
		case axis != nil && axis.Int == 0: // over the rows
		case n.Op == "Softmax":
			return agents.Probabilities
		case n.Op == "LogSoftmax":
			return agents.Logits
		}
		break
	}
	return agents.Values
}

func values(vs []onnx.Value) string {
	var names []string
	for _, v := range vs {
		names = append(names, v.String())
	}
	return strings.Join(names, ", ")
}

// connect finds what each input is.
func (p *Policy) connect() error {
	var fields []string
	public, at := 0, map[string][2]int{}
	all := 0
	for _, f := range p.spec.Obs {
		at[f.Name] = [2]int{all, all + f.Len()}
		all += f.Len()
		if !f.Critic {
			public = all
		}
		fields = append(fields, f.Name)
	}
	var rest []onnx.Value
	for _, v := range p.prog.Inputs() {
		size := onnx.Len(v.Shape[1:])
		if slices.Contains(maskNames, v.Name) {
			if size != p.spec.MaskLen() {
				return fmt.Errorf("input %v has %d numbers a row, and %s has %d discrete actions", v, size, p.spec.ID,
					p.spec.MaskLen())
			}
			p.mask = v.Name
			continue
		}
		name := v.Name[strings.LastIndexByte(v.Name, '.')+1:] // some exporters call it obs.NAME
		if where, ok := at[name]; ok {
			f := p.spec.Obs[slices.Index(fields, name)]
			if !fits(v.Shape[1:], f.Shape) {
				return fmt.Errorf("input %v does not fit the field %s of %s, whose shape is %v", v, f.Name, p.spec.ID, f.Shape)
			}
			if err := holds(v); err != nil {
				return err
			}
			p.in = append(p.in, feed{v.Name, where[0], where[1]})
			continue
		}
		rest = append(rest, v)
	}
	switch {
	case len(rest) == 0 && len(p.in) > 0:
		return nil
	case len(rest) != 1 || len(p.in) > 0:
		return fmt.Errorf("the inputs %s are neither one observation nor its fields (%s) and action_mask",
			values(p.prog.Inputs()), strings.Join(fields, ", "))
	}
	v := rest[0]
	size := onnx.Len(v.Shape[1:])
	if size != all && size != public {
		return fmt.Errorf("input %v has %d numbers a row, and an observation of %s has %d", v, size, p.spec.ID, all)
	}
	if !fits(v.Shape[1:], []int{size}) && (len(p.spec.Obs) != 1 || !fits(v.Shape[1:], p.spec.Obs[0].Shape)) {
		return fmt.Errorf("input %v does not have the shape of an observation of %s, want [N %d]%s", v, p.spec.ID, size,
			orField(p.spec.Obs))
	}
	if err := holds(v); err != nil {
		return err
	}
	p.in = []feed{{v.Name, 0, size}}
	return nil
}

func orField(fields []env.Field) string {
	if len(fields) != 1 || len(fields[0].Shape) < 2 {
		return ""
	}
	return fmt.Sprintf(" or rows of %v", fields[0].Shape)
}

// fits reports whether shapes are the same but for dimensions of one element, or one of them is flat.
func fits(a, b []int) bool {
	if onnx.Len(a) != onnx.Len(b) {
		return false
	}
	a, b = without(a), without(b)
	return len(a) <= 1 || len(b) <= 1 || slices.Equal(a, b)
}

func without(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(d int) bool { return d == 1 })
}

// holds returns an error if an input has no type for observations: whole numbers would lose their fractions.
func holds(v onnx.Value) error {
	if v.Type != onnx.Float32 {
		return fmt.Errorf("input %v is of type %v, want float32, as observations are", v, v.Type)
	}
	return nil
}

// checkResult returns why the output cannot decide.
func (p *Policy) checkResult() error {
	rows := max(1, p.prog.Rows())
	i, err := p.prog.For(rows)
	if err != nil {
		return err
	}
	t, _ := i.Output(p.out.name)
	a := &p.spec.Action
	width, typ, right, what := len(a.Sizes), onnx.Int64, t.Type == onnx.Int64 || t.Type == onnx.Int32,
		"the index of each factor"
	switch {
	case width == 0:
		width, typ, right, what = len(a.Low), onnx.Float32, t.Type == onnx.Float32, "each number of an action"
	case p.out.kind != "":
		width, typ, right, what = p.spec.MaskLen(), onnx.Float32, t.Type == onnx.Float32, "a score for each discrete action"
	}
	if !right || onnx.Len(t.Shape) != rows*width || len(t.Shape) > 2 || len(t.Shape) == 0 || t.Shape[0] != rows {
		out := onnx.Value{Name: p.out.name, Type: t.Type, Known: true, Shape: t.Shape}
		return fmt.Errorf("output %v, want %v %s: %s of %s", out, typ, onnx.ShapeString([]int{rows, width}), what, p.spec.ID)
	}
	return nil
}
