package policyname

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"clustergym/internal/nearest"
)

// An order can be written out in place of a name:
//
//	[LABEL = ]CLAUSE[; CLAUSE]…        fair = key: user_gpus - wait / 3600; start if: gpus <= 8
//
// A clause is one of Clauses or a constant, a colon, and an expression that package expression compiles. It ends at a
// semicolon, or where a line begins the next clause. A comment begins with // or, at the beginning of a line, with #.
// The label is what tables call the order. Admission and back-filling stand behind it as behind every order: key:
// estimate+skip. No variable of an expression has the name of an admission or a kind of back-filling.

// The clauses of a written order.
const (
	Key     = "key"      // by which jobs are ranked, least first
	StartIf = "start if" // the condition without which a job is held back
	StopIf  = "stop if"  // the condition without which a running job is not stopped
)

// Clauses returns the names of clauses that are no constants.
func Clauses() []string { return []string{Key, StartIf, StopIf} }

// Clause is one clause of a written order.
type Clause struct {
	Name string // one of Clauses, or a constant with its $
	Text string // the expression on one line, or the number of a constant
}

const (
	// MostWritten is the greatest length of a written order in bytes.
	MostWritten = 4000
	mostClauses = 64
	mostLabel   = 40
	// shortest is how long a written order without a label may be to stand in tables as it is.
	shortest = 40
)

// IsWritten reports whether text is an order that is written out, right or wrong, perhaps one that looks ahead.
func IsWritten(text string) bool {
	_, base := cutAhead(strings.TrimSpace(text))
	base = uncommented(base)
	if _, _, ok := beginsClause(base); ok {
		return true
	}
	_, rest, ok := cutLabel(base)
	if ok {
		_, _, ok = beginsClause(rest)
	}
	return ok
}

// cutLabel cuts off what stands before the first =, if that is a label.
func cutLabel(text string) (label, rest string, ok bool) {
	label, rest, ok = strings.Cut(text, "=")
	label = strings.TrimSpace(label)
	return label, rest, ok && isLabel(label)
}

// isLabel reports whether text can name a written order: a letter, then letters, digits, dots, hyphens and underscores.
func isLabel(text string) bool {
	for i, r := range text {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789.-_", r)) {
			return false
		}
	}
	return text != "" && len(text) <= mostLabel
}

// isConstant reports whether name is that of a constant: $ and an identifier.
func isConstant(name string) bool {
	rest, ok := strings.CutPrefix(name, "$")
	return ok && isLabel(rest) && !strings.ContainsAny(rest, ".-")
}

// beginsClause cuts off the name of a clause and its colon.
func beginsClause(text string) (name, rest string, ok bool) {
	head, rest, ok := strings.Cut(text, ":")
	if !ok || len(head) > 2*mostLabel {
		return "", text, false
	}
	name = strings.Join(strings.Fields(head), " ")
	return name, rest, slices.Contains(Clauses(), name) || isConstant(name)
}

// uncommented returns text without the comments at its beginning.
func uncommented(text string) string {
	for text = strings.TrimSpace(text); strings.HasPrefix(text, "#") || strings.HasPrefix(text, "//"); {
		_, text, _ = strings.Cut(text, "\n")
		text = strings.TrimSpace(text)
	}
	return text
}

// scanner walks over a text of expressions.
type scanner struct {
	quote byte // that is open, 0 = none
	depth int  // brackets that are open
	skip  bool // the next byte is escaped
}

// next takes in one byte. It reports whether the byte stands outside of quotes and brackets.
func (s *scanner) next(c byte) (outside bool) {
	switch {
	case s.skip:
		s.skip = false
	case s.quote != 0:
		s.skip = c == '\\' && s.quote != '`'
		if c == s.quote {
			s.quote = 0
		}
	case strings.IndexByte("'\"`", c) >= 0:
		s.quote = c
	case strings.IndexByte("([{", c) >= 0:
		s.depth++
	case strings.IndexByte(")]}", c) >= 0:
		s.depth = max(0, s.depth-1)
	default:
		return s.depth == 0
	}
	return false
}

// Split returns the names of a list that is joined by commas, each without the spaces around it. The commas in the
// brackets and quotes of a written order separate nothing, and a name in double quotes, in which two stand for one, is
// what is in them.
func Split(list string) []string {
	var all []string
	for {
		name, rest, more := cutName(list)
		all = append(all, name)
		if list = rest; !more {
			return all
		}
	}
}

// cutName cuts off the first name of a list.
func cutName(list string) (name, rest string, more bool) {
	list = strings.TrimSpace(list)
	if strings.HasPrefix(list, `"`) {
		for i := 1; i < len(list); i++ {
			switch {
			case list[i] != '"':
			case i+1 < len(list) && list[i+1] == '"':
				i++
			default:
				if rest := strings.TrimSpace(list[i+1:]); rest == "" || rest[0] == ',' {
					return strings.ReplaceAll(list[1:i], `""`, `"`), strings.TrimPrefix(rest, ","), rest != ""
				}
			}
		}
	}
	var s scanner
	written := IsWritten(list)
	for i := range len(list) {
		if outside := s.next(list[i]); list[i] == ',' && (outside || !written) {
			return strings.TrimSpace(list[:i]), list[i+1:], true
		}
	}
	return list, "", false
}

// parseWritten takes the name of a written order apart.
func parseWritten(text string) (Name, error) {
	ahead, base := cutAhead(strings.TrimSpace(text))
	base, rule := strings.CutSuffix(strings.TrimRight(base, " \t\r\n"), slots)
	n := Name{Ahead: ahead}
	for {
		i := strings.LastIndexByte(base, '+')
		part := strings.TrimSpace(base[i+1:])
		switch {
		case i < 0:
		case n.Backfill+n.Admission == "" && slices.Contains(Backfills(), part):
			n.Backfill, base = part, base[:i]
			continue
		case n.Admission == "" && slices.Contains(Admissions(), part):
			n.Admission, base = part, base[:i]
			continue
		case slices.Contains(Backfills(), part) || slices.Contains(Admissions(), part):
			return Name{}, fmt.Errorf("what follows the order is +strict, +skip or +commit, then +easy or +conservative, " +
				"where needed")
		}
		break
	}
	if n.Kind = Queue; rule {
		if n.Kind = Rule; n.Admission+n.Backfill != "" {
			return Name{}, fmt.Errorf("a rule has neither admission nor back-filling; leave %s out",
				Name{Admission: n.Admission, Backfill: n.Backfill})
		}
	}
	w, err := ReadWritten(base)
	n.Base = w.String()
	if err != nil {
		return Name{}, err
	}
	return n, nil
}

// Written is an order that is written out.
type Written struct {
	Label   string // what tables call it, "" = it has none
	Clauses []Clause
}

// ReadWritten takes a written order apart, without admission and back-filling. It compiles no expression.
func ReadWritten(text string) (w Written, err error) {
	if len(text) > MostWritten {
		return w, fmt.Errorf("it has %d bytes; write an order in at most %d", len(text), MostWritten)
	}
	for _, r := range text {
		if !unicode.IsPrint(r) && !strings.ContainsRune("\t\r\n", r) {
			return w, fmt.Errorf("it contains %U, which cannot be printed; write letters, digits and signs", r)
		}
	}
	text = uncommented(text)
	if _, _, ok := beginsClause(text); !ok {
		if label, rest, ok := cutLabel(text); ok {
			w.Label, text = label, rest
		}
	}
	for _, part := range cutClauses(text) {
		name, rest, ok := beginsClause(part)
		if rest = strings.TrimSpace(rest); !ok {
			return w, noClause(part)
		}
		if slices.ContainsFunc(w.Clauses, func(c Clause) bool { return c.Name == name }) {
			return w, fmt.Errorf("it has %s: twice; write it once", name)
		}
		if rest == "" {
			return w, fmt.Errorf("%s: is empty; write an expression behind it", name)
		}
		w.Clauses = append(w.Clauses, Clause{name, rest})
	}
	if len(w.Clauses) > mostClauses {
		return w, fmt.Errorf("it has %d clauses; write at most %d", len(w.Clauses), mostClauses)
	}
	if w.Of(Key) == "" {
		return w, fmt.Errorf("it has no key; write %s: and an expression by which jobs are ranked, as %s: wait / gpus", Key,
			Key)
	}
	return w, nil
}

// noClause says that a part of a written order begins with no clause.
func noClause(part string) error {
	head, _, _ := strings.Cut(part, ":")
	head = strings.Join(strings.Fields(head), " ")
	if len(head) > mostLabel {
		head = head[:strings.LastIndexFunc(head[:mostLabel], func(rune) bool { return true })] + "…"
	}
	return fmt.Errorf("a clause begins with %q; begin it with %s: or $NAME:%s", head,
		strings.Join(Clauses(), ":, "), nearest.Meant(head, Clauses()))
}

// cutClauses returns the clauses of a text, each on one line and without comments.
func cutClauses(text string) (all []string) {
	var clause []byte
	end := func() {
		if s := strings.TrimSpace(string(clause)); s != "" {
			all = append(all, s)
		}
		clause = clause[:0]
	}
	var s scanner
	for line := range strings.Lines(text) {
		if s.quote == 0 && strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		if _, _, ok := beginsClause(line); ok && s.quote == 0 && s.depth == 0 {
			end()
		}
		for i := range len(line) {
			c := line[i]
			if s.quote == 0 && strings.HasPrefix(line[i:], "//") {
				break
			}
			if outside := s.next(c); outside && c == ';' {
				end()
				continue
			}
			if c == '\n' || c == '\r' || c == '\t' {
				c = ' '
			}
			if c != ' ' || s.quote != 0 || !bytes.HasSuffix(clause, []byte(" ")) {
				clause = append(clause, c)
			}
		}
	}
	end()
	return all
}

// Of returns the text of the clause called name, or "" where the order has no such clause.
func (w *Written) Of(name string) string {
	for _, c := range w.Clauses {
		if c.Name == name {
			return c.Text
		}
	}
	return ""
}

// Constants returns the names of the constants, with their $.
func (w *Written) Constants() (names []string) {
	for _, c := range w.Clauses {
		if isConstant(c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// With returns the order with another text of the clause called name.
func (w Written) With(name, text string) Written {
	w.Clauses = slices.Clone(w.Clauses)
	for i := range w.Clauses {
		if w.Clauses[i].Name == name {
			w.Clauses[i].Text = text
		}
	}
	return w
}

// Without returns the order without the clause called name.
func (w Written) Without(name string) Written {
	w.Clauses = slices.DeleteFunc(slices.Clone(w.Clauses), func(c Clause) bool { return c.Name == name })
	return w
}

// String returns the order on one line. ReadWritten reads the same order from it.
func (w Written) String() string {
	parts := make([]string, len(w.Clauses))
	for i, c := range w.Clauses {
		parts[i] = c.Name + ": " + c.Text
	}
	text := strings.Join(parts, "; ")
	if w.Label != "" {
		text = w.Label + " = " + text
	}
	return text
}

// Excerpt returns text for messages: the beginning of a long order that is written out.
func Excerpt(text string) string {
	const most = 100
	if letters := []rune(text); IsWritten(text) && len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}

// Short returns what tables show of a policy called text: a written order by its label if it has one, and by the first
// digits of its SHA-256 if it is long and has none; all others as they are.
func Short(text string) string {
	if !IsWritten(text) {
		return text
	}
	n, err := Parse(text)
	if err != nil {
		return text
	}
	return n.Short()
}

// Short is Short for the parts of a name.
func (n Name) Short() string {
	w, err := ReadWritten(n.Base)
	switch {
	case err != nil:
	case w.Label != "":
		n.Base = w.Label
	case len(n.Base) > shortest:
		return n.Digest()
	}
	return n.String()
}

// Digest returns the name with the first digits of the order's SHA-256 in place of the order.
func (n Name) Digest() string {
	sum := sha256.Sum256([]byte(n.Base))
	n.Base = "expr-" + hex.EncodeToString(sum[:4])
	return n.String()
}
