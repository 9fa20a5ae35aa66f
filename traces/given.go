package traces

// NotGiven reports whether a cell, without blanks around it, is empty or a word by which programs say that a number, a
// time or a type is not there, in any capitals: None (Python), NaN, NaT and <NA> (pandas), NA (R), NULL and \N
// (databases), #N/A (spreadsheets), Unknown (Slurm), n/a, nil and dashes.
func NotGiven(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if len(b) > longest || !begins(b[0]) {
		return false
	}
	var lower [longest]byte
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	switch string(lower[:len(b)]) {
	case "none", "nat", "nan", "null", "nil", "n/a", "na", "unknown", "-", "--", "<na>", "<nan>", "<none>", "<null>",
		"(null)", "(none)", "#n/a", "#na", `\n`, "-nan", "undefined":
		return true
	}
	return false
}

// begins reports whether one of the words begins with c; most cells end here.
func begins(c byte) bool {
	switch c {
	case 'n', 'N', 'u', 'U', '-', '<', '(', '#', '\\':
		return true
	}
	return false
}

// longest is the length of the longest word of NotGiven.
const longest = len("undefined")

// NoName is NotGiven for a name, such as that of a user: people are called Null, Nan and Na, so words that could be one
// count only as programs write them: NaN, nan, NaT, None, none, NULL, null, NA, N/A, n/a, nil, undefined, those in
// brackets, #N/A, \N and dashes. "unknown" and "na" are names.
func NoName(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if len(b) > longest || !begins(b[0]) {
		return false
	}
	switch string(b) {
	case "None", "none", "NONE", "NaT", "NaN", "nan", "NAN", "-nan", "-NaN", "NULL", "null", "nil", "NA", "N/A", "n/a",
		"undefined", "-", "--", `\N`:
		return true
	}
	return (b[0] == '<' || b[0] == '(' || b[0] == '#') && NotGiven(b)
}
