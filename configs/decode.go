package configs

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"clustergym/internal/fault"
)

const (
	// A document that expands to more values than this through aliases is an attack or an accident.
	maxNodes = 1 << 16
	maxDepth = 64
	// More faults are of no use to a reader, and a hostile document could have millions.
	maxFaults = 100

	nullTag  = "!!null"
	mergeTag = "!!merge"
)

// decoder walks a document and the value it describes together.
type decoder struct {
	errs  []*Error
	lines map[string]int // of every key and list element given
	bad   []string       // keys whose values could not be read
	nodes int
}

func newDecoder() *decoder { return &decoder{lines: map[string]int{}} }

// fail records a fault at key.
func (d *decoder) fail(key string, line int, err error) {
	d.bad = append(d.bad, key)
	d.errs = append(d.errs, &Error{Line: line, Err: err})
}

func (d *decoder) wrong(key string, n *yaml.Node, line int, want string) {
	if key == "" {
		d.fail(key, line, fmt.Errorf("got %s, want %s", describe(n), want))
		return
	}
	d.fail(key, line, &fault.Fault{Key: key, Value: describe(n), Want: want})
}

// follows reports whether a fault at key may only be a consequence of a value that could not be read, at the same key,
// inside it or around it.
func (d *decoder) follows(key string) bool {
	return slices.ContainsFunc(d.bad, func(b string) bool { return within(key, b) || within(b, key) })
}

// within reports whether key is outer or inside it.
func within(key, outer string) bool {
	rest, ok := strings.CutPrefix(key, outer)
	return ok && (rest == "" || outer == "" || rest[0] == '.' || rest[0] == '[')
}

// line returns the line of key, or of the innermost section around it that the document has.
func (d *decoder) line(key string) int {
	for key != "" {
		if n, ok := d.lines[key]; ok {
			return n
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return 0
}

// value decodes n into v, which is settable. key is its path.
func (d *decoder) value(key string, n *yaml.Node, v reflect.Value, depth int) {
	line := n.Line
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if d.tooLarge(key, line, depth) {
		return
	}
	if key != "" {
		if _, seen := d.lines[key]; !seen {
			d.lines[key] = line
		}
	}
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			p.Elem().Set(v.Elem())
		}
		d.value(key, n, p.Elem(), depth+1)
		v.Set(p)
		return
	}
	if d.custom(key, n, line, v) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(key, n, line, v, depth)
	case reflect.Map:
		d.mapping(key, n, line, v, depth)
	case reflect.Slice, reflect.Array:
		d.list(key, n, line, v, depth)
	case reflect.Interface:
		var x any
		if err := n.Decode(&x); err != nil {
			d.fail(key, line, fmt.Errorf("%s: %w", orDocument(key), err))
			return
		}
		if x == nil {
			v.SetZero()
			return
		}
		v.Set(reflect.ValueOf(x))
	default:
		if want := scalar(n, v); want != "" {
			d.wrong(key, n, line, want)
		}
	}
}

// tooLarge counts a value and reports whether there are too many values or key is too deep. It records the fault once.
func (d *decoder) tooLarge(key string, line, depth int) bool {
	if len(d.errs) >= maxFaults {
		return true
	}
	if d.nodes++; d.nodes <= maxNodes && depth <= maxDepth {
		return false
	}
	if d.nodes <= maxNodes+1 {
		d.fail(key, line, fmt.Errorf("%s: too large, or too deep, once its aliases are written out", orDocument(key)))
		d.nodes = maxNodes + 1
	}
	return true
}

func orDocument(key string) string {
	if key == "" {
		return "the document"
	}
	return key
}

// custom lets types decode themselves. The part of their error after "want " becomes the fault's Want.
func (d *decoder) custom(key string, n *yaml.Node, line int, v reflect.Value) bool {
	var err error
	switch u := v.Addr().Interface().(type) {
	case yaml.Unmarshaler:
		err = u.UnmarshalYAML(n)
	case encoding.TextUnmarshaler:
		if n.Kind != yaml.ScalarNode || n.ShortTag() == nullTag {
			d.wrong(key, n, line, "a single value")
			return true
		}
		err = u.UnmarshalText([]byte(n.Value))
	default:
		return false
	}
	if err == nil {
		return true
	}
	if inner := fault.All(err); len(inner) > 0 {
		for _, f := range inner {
			d.fail(join(key, f.Key), line, &fault.Fault{Key: join(key, f.Key), Value: f.Value, Want: f.Want})
		}
		return true
	}
	if _, want, ok := strings.Cut(err.Error(), "want "); ok {
		d.wrong(key, n, line, want)
		return true
	}
	d.fail(key, line, fmt.Errorf("%s: got %s: %w", orDocument(key), describe(n), err))
	return true
}

// isText reports whether the type of v reads itself from a text, so that it is a single value even if it is a struct.
func isText(v reflect.Value) bool {
	return reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func join(key, inner string) string {
	if key == "" || inner == "" || inner[0] == '[' {
		return key + inner
	}
	return key + "." + inner
}

// entry is one key of a mapping with its value.
type entry struct {
	key    string
	line   int
	value  *yaml.Node
	merged bool // came from a merge key, so a key of the mapping itself goes first
}

// entries lists a mapping's keys, merged ones last, and records a fault for keys given twice.
func (d *decoder) entries(key string, n *yaml.Node, depth int) []entry {
	var all, merged []entry
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.ShortTag() == mergeTag {
			merged = append(merged, d.merge(key, v, depth)...)
			continue
		}
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			d.fail(join(key, "?"), n.Content[i].Line,
				fmt.Errorf("%s: got %s as a key, want a name", orDocument(key), describe(k)))
			continue
		}
		path, line := join(key, k.Value), n.Content[i].Line
		if first, twice := seen[k.Value]; twice {
			d.fail(path, line, fmt.Errorf("%s: given twice, first on line %d", path, first))
			continue
		}
		seen[k.Value] = line
		all = append(all, entry{key: k.Value, line: line, value: v})
	}
	for _, e := range merged {
		if _, given := seen[e.key]; !given {
			seen[e.key] = e.line
			all = append(all, e)
		}
	}
	return all
}

// merge lists the entries that a merge key adds.
func (d *decoder) merge(key string, n *yaml.Node, depth int) []entry {
	line := n.Line
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if d.tooLarge(key, line, depth) {
		return nil
	}
	var all []entry
	switch n.Kind {
	case yaml.MappingNode:
		for _, e := range d.entries(key, n, depth+1) {
			e.merged = true
			all = append(all, e)
		}
	case yaml.SequenceNode:
		for _, m := range n.Content {
			all = append(all, d.merge(key, m, depth+1)...)
		}
	default:
		d.fail(join(key, "<<"), line, fmt.Errorf("%s: got %s, want keys and values", join(key, "<<"), describe(n)))
	}
	return all
}

func (d *decoder) structure(key string, n *yaml.Node, line int, v reflect.Value, depth int) {
	if n.ShortTag() == nullTag {
		return // an empty section
	}
	if n.Kind != yaml.MappingNode {
		d.wrong(key, n, line, "keys and values")
		return
	}
	names, byName := fields(v, true)
	for _, e := range d.entries(key, n, depth) {
		path := join(key, e.key)
		f, known := byName[e.key]
		if !known {
			d.fail(path, e.line, unknown(path, e.key, names, v))
			continue
		}
		d.lines[path] = e.line
		d.value(path, e.value, f.value, depth+1)
	}
}

func (d *decoder) mapping(key string, n *yaml.Node, line int, v reflect.Value, depth int) {
	if n.ShortTag() == nullTag {
		return
	}
	if n.Kind != yaml.MappingNode || v.Type().Key().Kind() != reflect.String {
		d.wrong(key, n, line, "keys and values")
		return
	}
	all := d.entries(key, n, depth)
	if len(all) == 0 {
		v.SetZero()
		return
	}
	m := reflect.MakeMapWithSize(v.Type(), len(all))
	for _, e := range all {
		path := join(key, e.key)
		d.lines[path] = e.line
		x := reflect.New(v.Type().Elem()).Elem()
		d.value(path, e.value, x, depth+1)
		m.SetMapIndex(reflect.ValueOf(e.key).Convert(v.Type().Key()), x)
	}
	v.Set(m)
}

func (d *decoder) list(key string, n *yaml.Node, line int, v reflect.Value, depth int) {
	if n.Kind != yaml.SequenceNode {
		d.wrong(key, n, line, "a list")
		return
	}
	if v.Kind() == reflect.Array {
		if len(n.Content) != v.Len() {
			d.fail(key, line,
				&fault.Fault{Key: key, Value: fmt.Sprintf("%d elements", len(n.Content)), Want: strconv.Itoa(v.Len())})
			return
		}
	} else if len(n.Content) == 0 {
		v.SetZero()
		return
	} else {
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	}
	for i, c := range n.Content {
		d.value(fmt.Sprintf("%s[%d]", key, i), c, v.Index(i), depth+1)
	}
}

// field is one key of a struct: its value, and the options of its yaml tag.
type field struct {
	value reflect.Value
	opts  string
}

// fields returns the keys of a struct in order of declaration, with their fields. A struct that is inlined adds its
// keys to those around it. So does an open section: an inlined interface that holds a pointer to a struct, so that the
// keys depend on the value. With change set the struct behind an open section is copied first, because configurations
// that were copied from each other share it; v must be settable then.
func fields(v reflect.Value, change bool) (names []string, byName map[string]field) {
	byName = map[string]field{}
	var visit func(v reflect.Value)
	visit = func(v reflect.Value) {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			inline := strings.Contains(","+opts+",", ",inline,")
			switch {
			case inline && f.Type.Kind() == reflect.Struct:
				visit(v.Field(i))
			case inline && f.Type.Kind() == reflect.Interface:
				if section, ok := openSection(v.Field(i), change); ok {
					visit(section)
				}
			case !f.IsExported() || name == "-":
			default:
				if name == "" {
					name = strings.ToLower(f.Name)
				}
				if _, twice := byName[name]; !twice {
					names = append(names, name)
					byName[name] = field{v.Field(i), opts}
				}
			}
		}
	}
	visit(v)
	return names, byName
}

// openSection returns the struct that v, an inlined interface, points to; ok is false where it holds none.
func openSection(v reflect.Value, change bool) (section reflect.Value, ok bool) {
	p := v.Elem()
	if p.Kind() != reflect.Pointer || p.IsNil() || p.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	if change {
		own := reflect.New(p.Type().Elem())
		own.Elem().Set(p.Elem())
		v.Set(own)
		p = own
	}
	return p.Elem(), true
}

var durationType = reflect.TypeFor[time.Duration]()

// scalar decodes a single value. If it cannot, want says what the value should have been.
func scalar(n *yaml.Node, v reflect.Value) (want string) {
	tag := n.ShortTag()
	if n.Kind != yaml.ScalarNode {
		tag = ""
	}
	var x any
	if tag != "" && tag != nullTag && n.Decode(&x) != nil {
		x = nil
	}
	if v.Type() == durationType {
		want = `a duration as "40s" or "1h30m"`
		if tag != "!!str" && !(tag == "!!int" && n.Value == "0") {
			return want
		}
		t, err := time.ParseDuration(n.Value)
		if err != nil {
			return want
		}
		v.SetInt(int64(t))
		return ""
	}
	switch v.Kind() {
	case reflect.String:
		var s string
		if tag == "" || tag == nullTag || n.Decode(&s) != nil {
			return "a text"
		}
		v.SetString(s)
	case reflect.Bool:
		b, ok := x.(bool)
		if !ok {
			return "true or false"
		}
		v.SetBool(b)
	default:
		return number(x, v)
	}
	return ""
}

// number is scalar for numbers; x is what the library reads.
func number(x any, v reflect.Value) (want string) {
	switch v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		want = "a whole number"
		if bits := v.Type().Bits(); bits < 64 {
			want = fmt.Sprintf("a whole number from %d to %d", int64(-1)<<(bits-1), int64(1)<<(bits-1)-1)
		}
		i, ok := integer(x)
		if !ok || v.OverflowInt(i) {
			return want
		}
		v.SetInt(i)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		want = fmt.Sprintf("a whole number from 0 to %d", uint64(math.MaxUint64)>>(64-v.Type().Bits()))
		u, ok := x.(uint64)
		if !ok {
			i, whole := integer(x)
			if u = uint64(i); !whole || i < 0 {
				return want
			}
		}
		if v.OverflowUint(u) {
			return want
		}
		v.SetUint(u)
	case reflect.Float32, reflect.Float64:
		n := reflect.ValueOf(x)
		if x == nil || n.Kind() == reflect.Bool || !n.CanConvert(reflect.TypeFor[float64]()) {
			return "a number"
		}
		f := n.Convert(reflect.TypeFor[float64]()).Float()
		// Rounding first: the largest float32, printed, is a little larger than itself.
		if v.Kind() == reflect.Float32 && math.IsInf(float64(float32(f)), 0) && !math.IsInf(f, 0) {
			return "a number of single precision"
		}
		v.SetFloat(f)
	default:
		return "nothing: the field has a type that YAML cannot fill"
	}
	return ""
}

// integer reads whole numbers, including those written as 1e6.
func integer(x any) (int64, bool) {
	switch x := x.(type) {
	case int:
		return int64(x), true
	case int64:
		return x, true
	case float64:
		if x == math.Trunc(x) && math.Abs(x) <= 1<<53 {
			return int64(x), true
		}
	}
	return 0, false
}

// describe returns the text with which a fault shows the value found.
func describe(n *yaml.Node) string {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys and values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == nullTag:
		return "nothing"
	case n.ShortTag() == "!!str":
		return strconv.Quote(short(n.Value))
	}
	return short(n.Value)
}

// short shortens a long value.
func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:57]) + "…"
	}
	return s
}
