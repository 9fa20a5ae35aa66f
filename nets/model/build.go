package model

import (
	"fmt"
	"math"

	"clustergym/internal/fault"
	"clustergym/nets/layer"
	"clustergym/nets/op"
)

// body is the part of a network below the heads.
type body struct {
	trunk  int         // value, one row for each observation
	tables []slotTable // what actions are scored from, in their order; none with head dense
	alone  bool        // actions are scored from their slots alone, without the trunk
}

// slotTable is a value with one row for each slot of one table. With Config.SkipEmpty only the rows that hold something
// are there, packed behind a row of no meaning.
type slotTable struct {
	v, rows int
	live    int // value that lists the rows, 0 = all are there
}

// slotBranch is a branch that ends in slots.
type slotBranch struct {
	slotTable
	wrong wrongSlots // if there are not as many as there are actions that stand for slots
}

// wrongSlots is a fault.
type wrongSlots struct {
	key   string
	value any
	want  string
}

// builder adds bodies and heads to a plan.
type builder struct {
	*plan
	cfg     Config
	in      Input // without fields for critics
	truth   int   // elements of those, at the end of the observation
	actions int
	critic  int // the first parameter that only the value depends on
	faults  fault.List

	// Of kind attention:
	live int            // value that lists the live tokens, 0 = none yet
	kept map[string]int // values whose memory others share, by what they are for
}

func newBuilder(cfg Config, in Input, actions int) (*builder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	public, ok := in.public()
	b := &builder{plan: newPlan(in), cfg: cfg, in: public, truth: in[len(public):].Size(), actions: actions}
	b.faults.Add(ok, "input", fmt.Sprint(in), "fields for critics behind all others")
	b.faults.Add(actions > 0, "actions", actions, "at least one")
	b.faults.Add(len(public) > 0 && public.Size() > 0, "input", fmt.Sprint(in), "fields with positive sizes")
	for i, br := range cfg.Branches {
		b.faults.Add(b.find(br.Field) >= 0, fmt.Sprintf("branches[%d].field", i), br.Field,
			fmt.Sprintf("one of %v", b.names()))
	}
	b.checkBase()
	if cfg.Head == "slots" {
		b.faults.Add(actions > 1, "actions", actions, "at least two with head slots: one slot and wait")
	}
	if err := b.faults.Err(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return b, nil
}

// slots returns the number of slots that the actions represent.
func (b *builder) slots() int {
	if b.cfg.Head == "each" {
		return b.actions
	}
	return b.actions - 1
}

// checkBase reports what of the base does not fit the observation.
func (b *builder) checkBase() {
	base := b.cfg.Base
	if base.Field == "" {
		return
	}
	i := b.find(base.Field)
	if i < 0 {
		b.faults.Add(false, "base.field", base.Field, fmt.Sprintf("one of %v", b.names()))
		return
	}
	shape := b.in[i].Shape
	if len(shape) < 1 || len(shape) > 2 || shape[0] > b.actions {
		b.faults.Add(false, "base.field", base.Field,
			fmt.Sprintf("a field with a row for each slot, at most the %d actions; its shape is %v", b.actions, shape))
		return
	}
	columns := b.in[i].Size() / shape[0]
	b.faults.Add(base.Column < columns, "base.column", base.Column,
		fmt.Sprintf("0 to %d, a column of field %s", columns-1, base.Field))
}

// based adds the base to the scores of actions, if there is one.
func (b *builder) based(scores int) int {
	c := b.cfg.Base
	if c.Field == "" {
		return scores
	}
	from, field := 0, b.find(c.Field)
	for _, f := range b.in[:field] {
		from += f.Size()
	}
	slots := b.in[field].Shape[0]
	base := op.Base{From: from + c.Column, Stride: b.in[field].Size() / slots, Slots: slots, Scale: c.Scale, Rest: c.Wait}
	return b.value(b.actions, &Based{scores, base})
}

// headGain returns the gain of a head of scores: 0, which is weights and biases of 0, over a base.
func (b *builder) headGain(gain float64) float64 {
	if b.cfg.Base.Field != "" {
		return 0
	}
	return gain
}

// informed returns the input of the value's layer: the trunk, and where there are fields for critics a layer over both.
func (b *builder) informed(prefix string, trunk int) int {
	if b.truth == 0 {
		return trunk
	}
	from := b.in.Size()
	x := b.concat(1, []int{trunk, b.columns(from, from+b.truth)})
	return b.dense(prefix+"value.truth", x, 1, b.width[trunk], layer.GainHidden, true, b.cfg.act())
}

func (b *builder) find(field string) int {
	for i, f := range b.in {
		if f.Name == field {
			return i
		}
	}
	return -1
}

func (b *builder) names() []string {
	var ns []string
	for _, f := range b.in {
		ns = append(ns, f.Name)
	}
	return ns
}

// weights returns the initialiser of a layer's weights; gain applies if they are orthogonal. A gain of 0 makes them 0.
func (b *builder) weights(gain float64) initialiser {
	if gain == 0 {
		return constant(0)
	}
	if b.cfg.Init == fanIn {
		return layer.FanIn
	}
	return orthogonal(gain)
}

// biases returns the initialiser of the biases of a layer with that many inputs.
func (b *builder) biases(inputs int) initialiser {
	if b.cfg.Init == fanIn {
		return uniform(1 / math.Sqrt(float64(inputs)))
	}
	return constant(0)
}

// dense adds a dense layer over value in, with rows rows for each observation.
func (b *builder) dense(name string, in, rows, n int, gain float64, bias bool, act op.Act) int {
	w, c := b.linear(name, b.width[in]/rows, n, gain, bias)
	return b.value(rows*n, &Dense{In: in, Weight: w, Bias: c, Rows: rows, Act: act})
}

// linear declares the weights [k, n] of a dense layer and its bias, -1 if it has none.
func (b *builder) linear(name string, k, n int, gain float64, bias bool) (w, c int) {
	w, c = b.param(name+".weight", b.weights(gain), k, n), -1
	if bias {
		init := b.biases(k)
		if gain == 0 {
			init = constant(0)
		}
		c = b.param(name+".bias", init, n)
	}
	return w, c
}

func (b *builder) concat(rows int, vs []int) int {
	if len(vs) == 1 {
		return vs[0]
	}
	w := 0
	for _, v := range vs {
		w += b.width[v]
	}
	return b.value(w, &Concat{vs, rows})
}

// body adds everything below the heads. Parameter names are prefix + name. valued says whether the state's value needs
// the trunk: without it there is no trunk if actions do not see one.
func (b *builder) body(prefix string, valued bool) body {
	if b.cfg.Kind == KindAttention {
		return b.attention(prefix)
	}
	var r body
	var trunk []int
	var slots []slotBranch
	if b.cfg.Kind == "mlp" {
		trunk = []int{0}
		if b.truth > 0 {
			trunk = []int{b.columns(0, b.in.Size())}
		}
	} else {
		branch := make(map[string]int, len(b.cfg.Branches))
		for i, br := range b.cfg.Branches {
			branch[br.Field] = i + 1
		}
		at := 0
		for _, f := range b.in { // in the order of the observation, not of the branches
			from, to := at, at+f.Size()
			at = to
			i := branch[f.Name] - 1
			if i < 0 {
				trunk = append(trunk, b.columns(from, to))
				continue
			}
			if v := b.branch(prefix, i, f, from, to); v.rows > 0 {
				slots = append(slots, v)
			} else {
				trunk = append(trunk, v.v)
			}
		}
	}
	if r.tables = b.tables(slots); len(r.tables) > 0 {
		// With head slots the trunk sees only the mean and the maximum over slots. Neither the critic nor a slot's context
		// then depends on the order of slots, and the number of weights does not depend on the number of slots. With head
		// each it sees them for the value alone, and only if there is nothing else to see.
		r.alone = b.cfg.Head == "each" && len(trunk) == 0
		if r.alone && !valued {
			return r
		}
		if b.cfg.Critic == criticFlat {
			b.faults.Add(r.alone, "critic", b.cfg.Critic, "nothing: the value sees other fields than the slots")
		}
		for _, maxima := range []bool{false, true} {
			if b.cfg.Head == "each" && !r.alone {
				break
			}
			if b.cfg.Critic == criticFlat {
				trunk = append(trunk, b.flat(prefix, r.tables))
				break
			}
			for _, t := range r.tables {
				trunk = append(trunk, b.value(b.width[t.v]/t.rows, &Pool{t.v, t.rows, maxima}))
			}
		}
	}
	if len(trunk) == 0 {
		return r // only after a fault
	}
	r.trunk = b.hidden(prefix, b.concat(1, trunk))
	return r
}

// tables joins branches that end in slots to tables: those with as many rows, one behind the other, describe the same
// slots side by side. If all tables together have fewer rows than there are actions that stand for slots, the last
// branches are tables of their own. It reports a fault if the rows are not one for each such action.
func (b *builder) tables(branches []slotBranch) (tables []slotTable) {
	if len(branches) == 0 || b.faults.Err() != nil {
		return nil
	}
	want, rows := b.slots(), 0
	first := make([]bool, len(branches)) // whether a branch begins a table
	for i, x := range branches {
		if first[i] = i == 0 || x.rows != branches[i-1].rows; first[i] {
			rows += x.rows
		}
	}
	for i := len(branches) - 1; i > 0 && rows < want; i-- {
		if !first[i] {
			first[i] = true
			rows += branches[i].rows
		}
	}
	if rows != want {
		for _, x := range branches {
			if x.rows != want {
				b.faults.Add(false, x.wrong.key, x.wrong.value, x.wrong.want)
			}
		}
		return nil
	}
	for i := 0; i < len(branches); {
		joined := []int{branches[i].v}
		n := branches[i].rows
		for i++; i < len(branches) && !first[i]; i++ {
			joined = append(joined, branches[i].v)
		}
		tables = append(tables, slotTable{v: b.concat(n, joined), rows: n, live: branches[i-1].live})
	}
	return tables
}

// hidden adds the dense layers of the trunk over value x.
func (b *builder) hidden(prefix string, x int) int {
	act := b.cfg.act()
	for i, n := range b.cfg.Hidden {
		name := fmt.Sprintf("%strunk.%d", prefix, i)
		if !b.cfg.LayerNorm {
			x = b.dense(name, x, 1, n, layer.GainHidden, true, act)
			continue
		}
		in := b.dense(name, x, 1, n, layer.GainHidden, false, op.Identity)
		scale, bias := b.param(name+".norm.scale", constant(1), n), b.param(name+".norm.bias", constant(0), n)
		x = b.value(n, &Norm{In: in, Scale: scale, Bias: bias, Rows: 1, Act: act})
	}
	return x
}

// columns adds a value that is the columns [from, to) of the observation.
func (b *builder) columns(from, to int) int {
	return b.value(to-from, &Columns{0, from, to})
}

// branch adds the layers of branch i over field f, whose elements are the columns [from, to) of the observation. The
// result has rows if it ends in slots.
func (b *builder) branch(prefix string, i int, f Field, from, to int) (r slotBranch) {
	br, act := b.cfg.Branches[i], b.cfg.act()
	key := fmt.Sprintf("branches[%d]", i)
	prefix += f.Name
	positions := 0
	if len(f.Shape) > 0 {
		positions = f.Shape[0]
	}
	v := 0
	if len(br.Convs) == 0 {
		v = b.columns(from, to)
	} else {
		var ok bool
		if v, positions, ok = b.convolutions(key, prefix, br.Convs, f, from, to); !ok {
			return r
		}
	}
	rows, asSlots := 1, br.Slots && b.cfg.slotted()
	if asSlots {
		rows = max(positions, 1)
		r.rows, r.wrong = rows, b.notSlots(key, &br, f, positions)
	} else if br.Slots { // with head dense the slots, if any, still share the layers
		rows = max(positions, 1)
	}
	t := slotTable{v: v, rows: rows}
	if b.cfg.SkipEmpty && asSlots {
		if len(br.Convs) > 0 || len(f.Shape) != 2 || len(b.in) > 1 {
			b.faults.Add(false, "skip_empty", true, "false: slots are not the rows of one table, the only field")
			return r
		}
		t = b.packed(f, from, to)
	}
	for j, n := range br.Dense {
		t.v = b.rowsDense(fmt.Sprintf("%s.dense.%d", prefix, j), t, n, layer.GainHidden, act)
	}
	v = t.v
	r.live = t.live
	if rows > 1 && !asSlots {
		v = b.value(b.width[v], &Same{v})
	}
	r.v = v
	return r
}

// convolutions adds convolutions over an image, the columns [from, to) of the observation. It returns their result and
// the number of its positions; ok is false after a fault.
func (b *builder) convolutions(key, prefix string, convs []Conv, f Field, from, to int) (v, positions int, ok bool) {
	if len(f.Shape) != 2 && len(f.Shape) != 3 {
		b.faults.Add(false, key+".field", f.Name,
			fmt.Sprintf("an image [H, W] or [H, W, C] for convolutions; its shape is %v", f.Shape))
		return 0, 0, false
	}
	h, w, c := f.Shape[0], f.Shape[1], 1
	if len(f.Shape) == 3 {
		c = f.Shape[2]
	}
	for j, k := range convs {
		kernel := fmt.Sprintf("%s.convs[%d].kernel", key, j)
		if k.grouped() {
			if f.Group < 1 || w%f.Group != 0 {
				b.faults.Add(false, kernel, "nothing",
					fmt.Sprintf("[down, across]: the columns of field %s form no groups that it could follow", f.Name))
				return 0, 0, false
			}
			k.Kernel = [2]int{h, f.Group}
			k.Stride = k.Kernel
		}
		g := op.Geometry{Kernel: k.Kernel, Stride: k.Stride, Pad: k.Pad}.Conv(h, w, c)
		if g.Check() != nil {
			want := fmt.Sprintf("at most the image and its padding, [%d %d]", h+2*k.Pad[0], w+2*k.Pad[1])
			if j == 0 {
				want += orGroup(f)
			}
			b.faults.Add(false, kernel, k.Kernel, want)
			return 0, 0, false
		}
		name := fmt.Sprintf("%s.conv.%d", prefix, j)
		weight := b.param(name+".weight", b.weights(layer.GainHidden), g.KH, g.KW, g.C, k.Filters)
		bias := b.param(name+".bias", b.biases(g.KH*g.KW*g.C), k.Filters)
		at := 0
		switch {
		case j > 0:
		case g.Tiles(): // one product, if the images are contiguous
			v = b.columns(from, to)
		default: // it reads its images from the observation itself
			at, g.Apart = from, b.width[v]
		}
		v = b.value(g.OutH()*g.OutW()*k.Filters, &Convolution{v, at, weight, bias, k.Filters, g, b.cfg.act()})
		h, w, c = g.OutH(), g.OutW(), k.Filters
	}
	return v, h * w, true
}

// notSlots returns the fault of a branch over field f that ends in another number of positions than there are actions
// that stand for slots.
func (b *builder) notSlots(key string, br *Branch, f Field, positions int) wrongSlots {
	which := "actions - 1"
	if b.cfg.Head == "each" {
		which = "actions"
	}
	if len(br.Convs) == 1 && !br.Convs[0].grouped() && f.Group > 0 {
		return wrongSlots{key + ".convs[0].kernel", br.Convs[0].Kernel,
			fmt.Sprintf("the rows and columns of one slot of field %s, [%d %d]%s", f.Name, f.Shape[0], f.Group, orGroup(f))}
	}
	return wrongSlots{key + ".slots", positions,
		fmt.Sprintf("%d positions at the end, one for each slot (%s); or several tables with so many together", b.slots(),
			which)}
}

// orGroup is the end of a fault in a kernel over field f, if it can be left out.
func orGroup(f Field) string {
	if f.Group < 1 {
		return ""
	}
	return "; or no kernel, stride and pad: they then follow the observation"
}

// actionHead adds one number for each action: logits, action values or advantages.
func (b *builder) actionHead(name string, y body, gain float64) int {
	if b.cfg.Head == "dense" {
		return b.dense(name, y.trunk, 1, b.actions, gain, true, op.Identity)
	}
	h, act := b.cfg.SlotHidden, b.cfg.act()
	context := -1
	var scores []int
	for i, t := range y.tables { // each has weights of its own, shared by its rows
		suffix := ""
		if i > 0 {
			suffix = fmt.Sprint(".", i)
		}
		k := t.rows
		var hidden int
		if y.alone {
			hidden = b.rowsDense(name+".slot"+suffix, t, h, layer.GainHidden, act)
		} else {
			// slot·W1 + context·W2 is one layer with two inputs: with gain 1 each the sum has the variance of gain sqrt 2.
			s := b.dense(name+".slot"+suffix, t.v, k, h, 1, false, op.Identity)
			if i == 0 {
				context = b.dense(name+".context", y.trunk, 1, h, 1, true, op.Identity)
			}
			hidden = b.value(k*h, &AddRows{s, context, k, act})
		}
		each := b.unpacked(t, b.rowsDense(name+".each"+suffix, slotTable{hidden, k, t.live}, 1, gain, op.Identity))
		scores = append(scores, each)
	}
	wait := -1
	if b.cfg.Head == "slots" {
		wait = b.dense(name+".wait", y.trunk, 1, 1, gain, true, op.Identity)
	}
	for i, t := range y.tables {
		scores[i] = b.value(t.rows, &Same{scores[i]})
	}
	if wait >= 0 {
		scores = append(scores, wait)
	}
	return b.concat(1, scores)
}
