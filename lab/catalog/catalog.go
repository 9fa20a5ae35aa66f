package catalog

import (
	"embed"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
)

// The kinds of entries.
const (
	KindTrace     = "trace"     // jobs; Format is a value of gymctl's --format
	KindInventory = "inventory" // machines, or nodes of virtual clusters (traces/inventory)
	KindProfiles  = "profiles"  // measured speeds of models (traces/profile)
	KindSample    = "sample"    // figures that configure a policy (traces/tiresias)
	KindSeries    = "series"    // counts and means over time, for comparisons; this program does not read them
)

var kinds = []string{KindTrace, KindInventory, KindProfiles, KindSample, KindSeries}

// Catalog is a list of entries and their sources. The one that Public returns is shared and must not be changed.
type Catalog struct {
	Sources []Source `yaml:"sources"`
	Entries []Entry  `yaml:"entries"`
}

// Source is a publisher's repository at one commit.
type Source struct {
	Name          string `yaml:"name"`
	Repository    string `yaml:"repository"` // OWNER/NAME
	Commit        string `yaml:"commit"`     // 40 hexadecimal digits
	Licence       string `yaml:"licence"`
	NonCommercial bool   `yaml:"noncommercial"` // the licence forbids commercial use
	Cite          string `yaml:"cite"`          // the papers to cite with published results
}

// Entry can be fetched by its name. It is a file, or a folder of files that are read together.
type Entry struct {
	Name   string `yaml:"name"`
	What   string `yaml:"what"` // one line that describes it
	Kind   string `yaml:"kind"`
	Format string `yaml:"format"` // the reader's name; "" for KindSeries
	Source string `yaml:"source"` // name of a Source
	// Profiles is the name of the entry of KindProfiles that gives run times to a trace without any, and Reference is one
	// of its GPU types. Both are "" for other entries.
	Profiles  string `yaml:"profiles"`
	Reference string `yaml:"reference"`
	Folder    bool   `yaml:"folder"`
	Files     []File `yaml:"files"`
}

// File is one file of an entry.
type File struct {
	Path   string `yaml:"path"`   // in the repository
	To     string `yaml:"to"`     // name in the cache; for a folder entry, the path in its folder
	Size   int64  `yaml:"size"`   // bytes
	SHA256 string `yaml:"sha256"` // 64 hexadecimal digits, in lower case
}

//go:embed catalog.yaml
var embedded embed.FS

var public = sync.OnceValue(func() *Catalog {
	c := &Catalog{}
	if err := configs.Decode(embedded, "catalog.yaml", c); err != nil {
		panic(fmt.Sprintf("catalog: the embedded catalogue: %v", err))
	}
	return c
})

// Public returns the catalogue of this program. Safe for concurrent use.
func Public() *Catalog { return public() }

// UnknownError is returned for a name that the catalogue does not have.
type UnknownError struct {
	Name string
	Near string // the name that was probably meant, "" = none is near
}

// Error names the unknown entry and suggests another one, or the list.
func (e *UnknownError) Error() string {
	if e.Near != "" {
		return fmt.Sprintf("public trace %q is unknown; did you mean %s?", e.Name, e.Near)
	}
	return fmt.Sprintf("public trace %q is unknown; gymctl trace get --list shows all", e.Name)
}

// Find returns the entry called name, or an *UnknownError.
func (c *Catalog) Find(name string) (*Entry, error) {
	for i := range c.Entries {
		if c.Entries[i].Name == name {
			return &c.Entries[i], nil
		}
	}
	return nil, &UnknownError{name, nearest.Name(name, c.Names())}
}

// Names returns the names of all entries, in the catalogue's order.
func (c *Catalog) Names() []string {
	names := make([]string, len(c.Entries))
	for i := range c.Entries {
		names[i] = c.Entries[i].Name
	}
	return names
}

// SourceOf returns e's source. It panics if the catalogue does not have it.
func (c *Catalog) SourceOf(e *Entry) *Source {
	for i := range c.Sources {
		if c.Sources[i].Name == e.Source {
			return &c.Sources[i]
		}
	}
	panic(fmt.Sprintf("catalog: entry %s has the unknown source %q", e.Name, e.Source))
}

// Size returns the total number of bytes of e's files.
func (e *Entry) Size() (n int64) {
	for _, f := range e.Files {
		n += f.Size
	}
	return n
}

// Path returns the path of e in dir: its file or its folder.
func (e *Entry) Path(dir string) string {
	if e.Folder {
		return filepath.Join(dir, e.Name)
	}
	return e.target(dir, &e.Files[0])
}

// target returns the path of f, a file of e, in dir.
func (e *Entry) target(dir string, f *File) string {
	if e.Folder {
		dir = filepath.Join(dir, e.Name)
	}
	return filepath.Join(dir, filepath.FromSlash(f.To))
}

// Publisher is the beginning of every file's address, without a slash at the end.
const Publisher = "https://raw.githubusercontent.com"

// URL returns the address of f below base, which is Publisher or a mirror of it.
func (s *Source) URL(base string, f *File) string {
	parts := strings.Split(s.Repository+"/"+s.Commit+"/"+f.Path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.TrimSuffix(base, "/") + "/" + strings.Join(parts, "/")
}

var (
	namePattern   = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	repoPattern   = regexp.MustCompile(`^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$`)
	commitPattern = regexp.MustCompile(`^[0-9a-f]{40}$`)
	hashPattern   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Validate returns an error that names every fault of c, or nil.
func (c *Catalog) Validate() error {
	var l fault.List
	var sources []string
	for i, s := range c.Sources {
		key := fmt.Sprintf("sources[%d].", i)
		l.Add(namePattern.MatchString(s.Name), key+"name", s.Name, "letters and digits in lower case, joined by -")
		l.Add(!slices.Contains(sources, s.Name), key+"name", s.Name, "a name that no other source has")
		l.Add(repoPattern.MatchString(s.Repository), key+"repository", s.Repository, "OWNER/NAME")
		l.Add(commitPattern.MatchString(s.Commit), key+"commit", s.Commit, "40 hexadecimal digits in lower case")
		l.Add(s.Licence != "", key+"licence", s.Licence, "a licence, or that none is stated")
		l.Add(s.Cite != "", key+"cite", s.Cite, "the paper to cite")
		sources = append(sources, s.Name)
	}
	names, targets := map[string]bool{}, map[string]bool{}
	for i := range c.Entries {
		e, key := &c.Entries[i], fmt.Sprintf("entries[%d].", i)
		l.Add(namePattern.MatchString(e.Name), key+"name", e.Name, "letters and digits in lower case, joined by -")
		l.Add(!names[e.Name], key+"name", e.Name, "a name that no other entry has")
		l.Add(e.What != "" && !strings.Contains(e.What, "\n"), key+"what", e.What, "one line that says what it is")
		l.Add(slices.Contains(kinds, e.Kind), key+"kind", e.Kind, nearest.OneOf(e.Kind, kinds))
		l.Add((e.Format == "") == (e.Kind == KindSeries), key+"format", e.Format,
			"the reader's name, and none for "+KindSeries)
		l.Add(slices.Contains(sources, e.Source), key+"source", e.Source, "the name of a source")
		l.Add(len(e.Files) == 1 || e.Folder && len(e.Files) > 0, key+"files", len(e.Files),
			"one file, or several in a folder")
		names[e.Name] = true
		p, err := c.Find(e.Profiles)
		l.Add(e.Profiles == "" || err == nil && p.Kind == KindProfiles, key+"profiles", e.Profiles,
			"the name of an entry of kind "+KindProfiles)
		l.Add((e.Profiles == "") == (e.Reference == ""), key+"reference", e.Reference,
			"a GPU type beside profiles, and none without")
		for j, f := range e.Files {
			at := fmt.Sprintf("%sfiles[%d].", key, j)
			l.Add(f.Path != "" && f.Path == path.Clean(f.Path) && filepath.IsLocal(f.Path), at+"path", f.Path,
				"a path in the repository")
			to := e.target("", &e.Files[j])
			// A folder entry's files must stay in its folder, and a single file must not be in any folder.
			l.Add(f.To == path.Clean(f.To) && filepath.IsLocal(f.To) && !strings.HasPrefix(f.To,
				".") && (e.Folder || !strings.Contains(f.To, "/")), at+"to", f.To,
				"a name, or in a folder a path below it")
			l.Add(!targets[to], at+"to", f.To, "a name that no other file has")
			l.Add(f.Size > 0, at+"size", f.Size, "a number of bytes above 0")
			l.Add(hashPattern.MatchString(f.SHA256), at+"sha256", f.SHA256, "64 hexadecimal digits in lower case")
			targets[to] = true
		}
	}
	return l.Err()
}

// FormatSize formats a number of bytes for people, in the decimal units of networks and disks.
func FormatSize(n int64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n == 1:
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

// CheckMirror returns an error unless base can replace Publisher: it must be an https address, or an http address of
// this machine.
func CheckMirror(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return fmt.Errorf("got %q, want the beginning of an https address", base)
	case u.Host == "" || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(base, "?#"):
		return fmt.Errorf("got %q, want the beginning of an address, as in https://mirror.example/traces", base)
	}
	if err := allowed(u, isLoopback(u)); err != nil {
		return fmt.Errorf("got %q, want https (http is for this machine only)", base)
	}
	return nil
}
