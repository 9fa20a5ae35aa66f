package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// The bill of materials is CycloneDX 1.6 in JSON. It is written here because cyclonedx-gomod, which makes the same list, adds the
// time of its run and the hash of its own executable, so that no two are equal, and names the system it runs on in the place of
// the one that a binary is for.

type bom struct {
	Schema       string       `json:"$schema"`
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     bomMeta      `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type bomMeta struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Ref        string     `json:"bom-ref"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	Scope      string     `json:"scope,omitempty"`
	Hashes     []bomHash  `json:"hashes,omitempty"`
	Licences   []bomGrant `json:"licenses,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type bomHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type bomGrant struct {
	Licence bomLicence `json:"license"`
}

type bomLicence struct {
	ID string `json:"id"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn,omitempty"`
}

// billOf returns the bill of materials of a binary: every module that is linked in, with version, the sum of go.sum and licences.
func billOf(s source, t target, binary []byte, all []module) ([]byte, error) {
	sum := sha256.Sum256(binary)
	self := component{
		Ref: "gymctl", Type: "application", Name: "gymctl", Version: s.version,
		Hashes:   []bomHash{{"SHA-256", hex.EncodeToString(sum[:])}},
		Licences: []bomGrant{{bomLicence{"Apache-2.0"}}},
		PURL:     fmt.Sprintf("pkg:generic/gymctl@%s?goarch=%s&goos=%s", s.version, t.arch, t.os),
		Properties: []property{
			{"clustergym:target", t.String()},
			{"clustergym:commit", commitName(s)},
		},
	}
	b := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1,
		// Two bills of equal content are the same bill: its serial number comes from the binary.
		Serial:   "urn:uuid:" + uuid(sum[:]),
		Metadata: bomMeta{Timestamp: s.time.Format(time.RFC3339), Component: self},
	}
	uses := dependency{Ref: self.Ref}
	for _, m := range all {
		c := component{Type: "library", Name: m.path, Version: m.version, Scope: "required"}
		c.PURL = "pkg:golang/" + purlPath(m.path) + "@" + url.PathEscape(m.version)
		c.Ref = c.PURL
		if m.sum != "" {
			raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.sum, "h1:"))
			if err != nil || len(raw) != sha256.Size {
				return nil, fmt.Errorf("%s: the sum %q is not h1: and base64", m.path, m.sum)
			}
			c.Hashes = []bomHash{{"SHA-256", hex.EncodeToString(raw)}}
			c.Properties = []property{{"clustergym:go.sum", m.sum}} // the hash of a list of hashes, not of one file
		}
		for _, id := range m.licences {
			c.Licences = append(c.Licences, bomGrant{bomLicence{id}})
		}
		b.Components = append(b.Components, c)
		b.Dependencies = append(b.Dependencies, dependency{Ref: c.Ref})
		uses.On = append(uses.On, c.Ref)
	}
	b.Dependencies = append([]dependency{uses}, b.Dependencies...)
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

func commitName(s source) string {
	switch {
	case s.commit == "":
		return "unknown"
	case s.modified:
		return s.commit + " (modified)"
	}
	return s.commit
}

// purlPath escapes a module path for a package URL, part by part.
func purlPath(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// uuid makes a UUID of version 8, whose bits are ours, from a hash.
func uuid(sum []byte) string {
	b := [16]byte(sum)
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
