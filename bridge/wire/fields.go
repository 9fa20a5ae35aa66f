package wire

// Fields reads the fields of a map one after another and keeps the first error. What it returns counts only while Err
// is
// nil.
type Fields struct {
	Map
	Err *Error
}

// Fail keeps an error, unless there is one already or it is nil.
func (f *Fields) Fail(e *Error) {
	if f.Err == nil {
		f.Err = e
	}
}

// Str is Map.Str.
func (f *Fields) Str(key, def string) string {
	v, e := f.Map.Str(key, def)
	f.Fail(e)
	return v
}

// Bool is Map.Bool.
func (f *Fields) Bool(key string, def bool) bool {
	v, e := f.Map.Bool(key, def)
	f.Fail(e)
	return v
}

// Int is Map.Int.
func (f *Fields) Int(key string, def, lo, hi int64) int64 {
	v, e := f.Map.Int(key, def, lo, hi)
	f.Fail(e)
	return v
}

// Ints is Map.Ints.
func (f *Fields) Ints(key string) []int64 {
	v, e := f.Map.Ints(key)
	f.Fail(e)
	return v
}

// Strs is Map.Strs.
func (f *Fields) Strs(key string, def []string) []string {
	v, e := f.Map.Strs(key, def)
	f.Fail(e)
	return v
}

// Sub is Map.Sub.
func (f *Fields) Sub(key string) Map {
	v, e := f.Map.Sub(key)
	f.Fail(e)
	return v
}
