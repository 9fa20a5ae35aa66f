package expression

import "math"

// Function is a function of numbers.
type Function struct {
	Name  string
	Form  string // how it is called
	About string

	one func(x float64) float64
	two func(x, y float64) float64
	any bool // two takes the numbers of any list, pair by pair from the left
}

// Functions returns the functions.
func Functions() []Function {
	return []Function{
		{Name: "min", Form: "min(x, y, …)", About: "the least", two: math.Min, any: true},
		{Name: "max", Form: "max(x, y, …)", About: "the greatest", two: math.Max, any: true},
		{Name: "abs", Form: "abs(x)", About: "without its sign", one: math.Abs},
		{Name: "floor", Form: "floor(x)", About: "the whole number below", one: math.Floor},
		{Name: "ceil", Form: "ceil(x)", About: "the whole number above", one: math.Ceil},
		{Name: "round", Form: "round(x)", About: "the nearest whole number, halves away from 0", one: math.Round},
		{Name: "sqrt", Form: "sqrt(x)", About: "the square root", one: math.Sqrt},
		{Name: "exp", Form: "exp(x)", About: "e to the power of x", one: math.Exp},
		{Name: "log", Form: "log(x)", About: "the natural logarithm", one: math.Log},
		{Name: "log2", Form: "log2(x)", About: "the logarithm to base 2", one: math.Log2},
		{Name: "log10", Form: "log10(x)", About: "the logarithm to base 10", one: math.Log10},
		{Name: "pow", Form: "pow(x, y)", About: "x to the power of y, as x ** y", two: math.Pow},
	}
}
