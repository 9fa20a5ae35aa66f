package expression

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"clustergym/internal/nearest"
	"clustergym/simulator/policyname"
)

// kind is the type of a value.
type kind uint8

const (
	number kind = iota
	condition
	text
)

func (k kind) String() string { return [...]string{"number", "condition", "text"}[k] }

// a returns the kind with its article.
func (k kind) a() string { return "a " + k.String() }

// value is a compiled part of an expression: the function of its kind.
type value struct {
	kind   kind
	number func(e *state) float64
	truth  func(e *state) bool
	text   func(e *state) string
	// fixed says that the value is the same in every state, so that the function can be called with none.
	fixed bool
	looks Looks
	// rate is by how much a number grows in a second, whatever the job and the state; NaN = that depends.
	rate float64
	// natural says that a number is never below 0.
	natural bool
}

// merged returns what a value has that is computed from x and y. Its rate is unknown if the clock decides.
func merged(k kind, x, y value) value {
	v := value{kind: k, fixed: x.fixed && y.fixed, looks: x.looks | y.looks}
	if v.looks&Clock != 0 {
		v.rate = math.NaN()
	}
	return v
}

// compiler compiles the expressions of one order.
type compiler struct {
	variables map[string]*Variable
	functions map[string]*Function
	constants map[string]float64 // by their names with $
	used      []string           // variables of numbers, in the order in which they first occur
}

func newCompiler() *compiler {
	c := &compiler{map[string]*Variable{}, map[string]*Function{}, map[string]float64{}, nil}
	for _, v := range Variables() {
		c.variables[v.Name] = &v
	}
	for _, f := range Functions() {
		c.functions[f.Name] = &f
	}
	return c
}

// problem is what is wrong with an expression, and where: the character, from 0.
type problem struct {
	at   int
	text string
}

func (p *problem) Error() string { return fmt.Sprintf("column %d: %s", p.at+1, p.text) }

func wrong(n ast.Node, format string, args ...any) error {
	return &problem{n.Location().From, fmt.Sprintf(format, args...)}
}

// compile compiles an expression whose value must be of kind k.
func (c *compiler) compile(source string, k kind) (value, error) {
	tree, err := parse(source)
	if err != nil {
		return value{}, err
	}
	v, err := c.node(tree)
	if err == nil && v.kind != k {
		err = fmt.Errorf("it is %s; write %s", v.kind.a(), hint(v.kind, k))
	}
	return v, err
}

// hint says how an expression of a kind is written in place of another one.
func hint(is, as kind) string {
	switch {
	case as == condition:
		return "a condition, such as gpus <= 8"
	case is == condition:
		return "a number, as CONDITION ? 0 : 1"
	}
	return "a number"
}

// parse parses an expression. The parser is other people's, and gets what anybody writes: a panic in it would be a
// syntax error that it does not know.
func parse(source string) (n ast.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = nil, errors.New("it is no expression")
		}
	}()
	tree, err := parser.Parse(source)
	if bad, ok := errors.AsType[*file.Error](err); ok {
		return nil, &problem{bad.From, unexpected(bad.Message)}
	} else if err != nil {
		return nil, err
	}
	return tree.Node, nil
}

// unexpected returns a message of the parser in this package's words: it has tokens as Operator("/").
func unexpected(message string) string {
	token, ok := strings.CutPrefix(message, "unexpected token ")
	if !ok {
		message, _, _ = strings.Cut(message, ": strconv.")
		return message
	}
	if token == "EOF" {
		return "the expression ends too early"
	}
	if _, rest, ok := strings.Cut(token, `("`); ok {
		token = strings.TrimSuffix(rest, `")`)
	}
	return fmt.Sprintf("%q is not expected here", token)
}

// node compiles one node and all below it.
func (c *compiler) node(n ast.Node) (v value, err error) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return fixed(float64(n.Value)), nil
	case *ast.FloatNode:
		return fixed(n.Value), nil
	case *ast.BoolNode:
		return value{kind: condition, truth: func(*state) bool { return n.Value }, fixed: true}, nil
	case *ast.StringNode:
		return value{kind: text, text: func(*state) string { return n.Value }, fixed: true}, nil
	case *ast.IdentifierNode:
		return c.variable(n)
	case *ast.UnaryNode:
		v, err = c.unary(n)
	case *ast.BinaryNode:
		v, err = c.binary(n)
	case *ast.ConditionalNode:
		v, err = c.conditional(n)
	case *ast.BuiltinNode:
		v, err = c.call(n, n.Name, n.Arguments)
	case *ast.CallNode:
		name, ok := n.Callee.(*ast.IdentifierNode)
		if !ok {
			return v, wrong(n, "only functions can be called; use one of %s", strings.Join(c.functionNames(), ", "))
		}
		v, err = c.call(n, name.Value, n.Arguments)
	case *ast.ArrayNode:
		return v, wrong(n, "a list stands only behind in, as user in [\"a\", \"b\"]")
	default:
		return v, wrong(n, "this is no number, condition or text; use variables, numbers, operators and functions")
	}
	if err != nil {
		return value{}, err
	}
	return v.folded(), nil
}

func fixed(x float64) value {
	return value{number: func(*state) float64 { return x }, fixed: true}
}

// folded returns a fixed value as a constant.
func (v value) folded() value {
	if !v.fixed {
		return v
	}
	switch v.kind {
	case number:
		return fixed(v.number(nil))
	case condition:
		x := v.truth(nil)
		v.truth = func(*state) bool { return x }
	}
	return v
}

func (c *compiler) variable(n *ast.IdentifierNode) (value, error) {
	if x, ok := c.constants[n.Value]; ok {
		return fixed(x), nil
	}
	v, ok := c.variables[n.Value]
	switch {
	case ok:
		if v.number != nil && !slices.Contains(c.used, v.Name) {
			c.used = append(c.used, v.Name)
		}
		return v.value(), nil
	case strings.HasPrefix(n.Value, "$"):
		return value{}, wrong(n, "the constant %s has no value; add a clause such as %s: 1", n.Value, n.Value)
	case c.functions[n.Value] != nil:
		return value{}, wrong(n, "%s is a function; call it as %s", n.Value, c.functions[n.Value].Form)
	}
	names := make([]string, 0, len(c.variables))
	for _, v := range Variables() {
		names = append(names, v.Name)
	}
	// The end of an order may be an admission that is misspelt.
	if near := nearest.Name(n.Value, append(policyname.Admissions(), policyname.Backfills()...)); near != "" &&
		nearest.Name(n.Value, names) == "" {
		return value{}, wrong(n, "%q is unknown; use +%s at the end", n.Value, near)
	}
	return value{}, wrong(n, "%q is unknown; use %s", n.Value, likely(n.Value, names))
}

// likely returns the one of names that was probably meant, else all of them.
func likely(name string, names []string) string {
	if near := nearest.Name(name, names); near != "" {
		return near
	}
	return "one of " + strings.Join(names, ", ")
}

// of compiles a node whose value must be of kind k; what names the operator or function in messages.
func (c *compiler) of(n ast.Node, k kind, what string) (value, error) {
	v, err := c.node(n)
	if err == nil && v.kind != k {
		err = wrong(n, "%s takes %s, and this is %s", what, k.a(), v.kind.a())
	}
	return v, err
}

func (c *compiler) unary(n *ast.UnaryNode) (value, error) {
	if n.Operator == "not" || n.Operator == "!" {
		x, err := c.of(n.Node, condition, n.Operator)
		f := x.truth
		x.truth = func(e *state) bool { return !f(e) }
		return x, err
	}
	x, err := c.of(n.Node, number, n.Operator)
	if f := x.number; n.Operator == "-" {
		x.number, x.rate, x.natural = func(e *state) float64 { return -f(e) }, -x.rate, false
	}
	return x, err
}

// arithmetic are the operators of numbers that give numbers.
func arithmetic(op string) func(x, y float64) float64 {
	switch op {
	case "%":
		return math.Mod
	case "**", "^":
		return math.Pow
	}
	return nil
}

func (c *compiler) binary(n *ast.BinaryNode) (v value, err error) {
	switch n.Operator {
	case "and", "&&", "or", "||":
		return c.junction(n)
	case "==", "!=":
		return c.equality(n)
	case "in":
		return c.among(n)
	case "contains", "startsWith", "endsWith":
		return c.substring(n)
	case "+", "-", "*", "/", "%", "**", "^", "<", "<=", ">", ">=":
	default:
		return v, wrong(n, "the operator %s is unknown here; use + - * / %% ** == != < <= > >= and or not in", n.Operator)
	}
	x, err := c.of(n.Left, number, n.Operator)
	if err != nil {
		return v, err
	}
	y, err := c.of(n.Right, number, n.Operator)
	if err != nil {
		return v, err
	}
	v = merged(number, x, y)
	f, g := x.number, y.number
	switch n.Operator {
	case "+":
		v.number, v.rate = func(e *state) float64 { return f(e) + g(e) }, x.rate+y.rate
	case "-":
		v.number, v.rate = func(e *state) float64 { return f(e) - g(e) }, x.rate-y.rate
	case "*":
		v.number = func(e *state) float64 { return f(e) * g(e) }
		switch {
		case x.fixed:
			v.rate = f(nil) * y.rate
		case y.fixed:
			v.rate = x.rate * g(nil)
		}
	case "/":
		v.number = func(e *state) float64 { return f(e) / g(e) }
		if y.fixed {
			v.rate = x.rate / g(nil)
		}
	case "<":
		v.kind, v.truth = condition, func(e *state) bool { return f(e) < g(e) }
		if x.natural && y.fixed && g(nil) <= 0 { // as in wait < 0 ? 0 : -wait
			return value{kind: condition, truth: func(*state) bool { return false }, fixed: true}, nil
		}
	case "<=":
		v.kind, v.truth = condition, func(e *state) bool { return f(e) <= g(e) }
	case ">":
		v.kind, v.truth = condition, func(e *state) bool { return f(e) > g(e) }
	case ">=":
		v.kind, v.truth = condition, func(e *state) bool { return f(e) >= g(e) }
	default:
		h := arithmetic(n.Operator)
		v.number = func(e *state) float64 { return h(f(e), g(e)) }
	}
	return v, nil
}

// junction compiles and, or.
func (c *compiler) junction(n *ast.BinaryNode) (value, error) {
	x, err := c.of(n.Left, condition, n.Operator)
	if err != nil {
		return value{}, err
	}
	y, err := c.of(n.Right, condition, n.Operator)
	if err != nil {
		return value{}, err
	}
	f, g := x.truth, y.truth
	v := merged(condition, x, y)
	if v.truth = func(e *state) bool { return f(e) && g(e) }; n.Operator == "or" || n.Operator == "||" {
		v.truth = func(e *state) bool { return f(e) || g(e) }
	}
	return v, nil
}

// equality compiles ==, !=.
func (c *compiler) equality(n *ast.BinaryNode) (value, error) {
	x, err := c.node(n.Left)
	if err != nil {
		return value{}, err
	}
	y, err := c.of(n.Right, x.kind, n.Operator+" behind "+x.kind.a())
	if err != nil {
		return value{}, err
	}
	v := merged(condition, x, y)
	switch equal := n.Operator == "=="; x.kind {
	case number:
		f, g := x.number, y.number
		v.truth = func(e *state) bool { return (f(e) == g(e)) == equal }
	case condition:
		f, g := x.truth, y.truth
		v.truth = func(e *state) bool { return (f(e) == g(e)) == equal }
	default:
		f, g := x.text, y.text
		v.truth = func(e *state) bool { return (f(e) == g(e)) == equal }
	}
	return v, nil
}

// among compiles in, with a list of constants.
func (c *compiler) among(n *ast.BinaryNode) (value, error) {
	x, err := c.node(n.Left)
	if err != nil {
		return value{}, err
	}
	list, ok := n.Right.(*ast.ArrayNode)
	if !ok || x.kind == condition {
		return value{}, wrong(n, "in stands between a text or number and a list of them, as user in [\"a\", \"b\"]")
	}
	var numbers []float64
	var texts []string
	for _, one := range list.Nodes {
		y, err := c.of(one, x.kind, "a list behind in")
		switch {
		case err != nil:
			return value{}, err
		case !y.fixed:
			return value{}, wrong(one, "a list behind in has constants alone")
		case x.kind == number:
			numbers = append(numbers, y.number(nil))
		default:
			texts = append(texts, y.text(nil))
		}
	}
	v := merged(condition, x, x)
	if f := x.number; x.kind == number {
		v.truth = func(e *state) bool { return slices.Contains(numbers, f(e)) }
	} else {
		f := x.text
		v.truth = func(e *state) bool { return slices.Contains(texts, f(e)) }
	}
	return v, nil
}

// substring compiles contains, startsWith, endsWith.
func (c *compiler) substring(n *ast.BinaryNode) (value, error) {
	x, err := c.of(n.Left, text, n.Operator)
	if err != nil {
		return value{}, err
	}
	y, err := c.of(n.Right, text, n.Operator)
	if err != nil {
		return value{}, err
	}
	f, g := x.text, y.text
	has := map[string]func(s, part string) bool{
		"contains": strings.Contains, "startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix,
	}[n.Operator]
	v := merged(condition, x, y)
	v.truth = func(e *state) bool { return has(f(e), g(e)) }
	return v, nil
}

// conditional compiles CONDITION ? X : Y.
func (c *compiler) conditional(n *ast.ConditionalNode) (value, error) {
	if n.Cond == n.Exp1 {
		return value{}, wrong(n.Cond, "a value is missing between ? and :")
	}
	on, err := c.of(n.Cond, condition, "what stands before ?")
	if err != nil {
		return value{}, err
	}
	x, err := c.node(n.Exp1)
	if err != nil {
		return value{}, err
	}
	y, err := c.of(n.Exp2, x.kind, "the other side of "+x.kind.a()+" in ? :")
	if err != nil {
		return value{}, err
	}
	f := on.truth
	if on.fixed {
		if f(nil) {
			return x, nil
		}
		return y, nil
	}
	v := merged(x.kind, on, merged(x.kind, x, y))
	switch x.kind {
	case number:
		if on.looks&Clock == 0 && x.rate == y.rate {
			v.rate = x.rate
		}
		g, h := x.number, y.number
		v.number = func(e *state) float64 {
			if f(e) {
				return g(e)
			}
			return h(e)
		}
	case condition:
		g, h := x.truth, y.truth
		v.truth = func(e *state) bool { return f(e) && g(e) || !f(e) && h(e) }
	default:
		g, h := x.text, y.text
		v.text = func(e *state) string {
			if f(e) {
				return g(e)
			}
			return h(e)
		}
	}
	return v, nil
}

func (c *compiler) functionNames() (names []string) {
	for _, f := range Functions() {
		names = append(names, f.Name)
	}
	return names
}

// call compiles the call of a function.
func (c *compiler) call(n ast.Node, name string, args []ast.Node) (value, error) {
	f, ok := c.functions[name]
	if !ok {
		return value{}, wrong(n, "the function %q is unknown; use %s", name, likely(name, c.functionNames()))
	}
	least, most := 1, 1
	if f.two != nil {
		least, most = 2, 2
	}
	if f.any {
		least, most = 1, math.MaxInt
	}
	if len(args) < least || len(args) > most {
		return value{}, wrong(n, "%s does not take %d numbers; call it as %s", name, len(args), f.Form)
	}
	var v value
	for i, arg := range args {
		x, err := c.of(arg, number, name)
		if err != nil {
			return value{}, err
		}
		if i == 0 {
			v = x
			continue
		}
		v = pair(f.two, v, x)
	}
	if g := v.number; f.one != nil {
		one := f.one
		v = merged(number, v, v)
		v.number = func(e *state) float64 { return one(g(e)) }
	}
	return v, nil
}

// pair is f of two values.
func pair(f func(x, y float64) float64, x, y value) value {
	g, h := x.number, y.number
	v := merged(number, x, y)
	v.number = func(e *state) float64 { return f(g(e), h(e)) }
	return v
}
