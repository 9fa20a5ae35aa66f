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

	"github.com/CycloneDX/cyclonedx-go"
)

// The bill of materials is CycloneDX 1.6 in JSON. It is put together here because cyclonedx-gomod, which makes the same
// list, adds the time of its run and the hash of its own executable, so that no two are equal, and names the system it
// runs on in the place of the one that a binary is for.

// billOf returns the bill of materials of a binary: every module that is linked in, with version, the sum of go.sum and
// licences.
func billOf(s source, t target, binary []byte, all []module) ([]byte, error) {
	sum := sha256.Sum256(binary)
	self := cyclonedx.Component{
		BOMRef: "gymctl", Type: cyclonedx.ComponentTypeApplication, Name: "gymctl", Version: s.version,
		Hashes:     hashOf(sum[:]),
		Licenses:   &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		PackageURL: fmt.Sprintf("pkg:generic/gymctl@%s?goarch=%s&goos=%s", s.version, t.arch, t.os),
		Properties: &[]cyclonedx.Property{
			{Name: "clustergym:target", Value: t.String()},
			{Name: "clustergym:commit", Value: commitName(s)},
		},
	}
	var parts []cyclonedx.Component
	var uses []string
	for _, m := range all {
		c := cyclonedx.Component{
			Type: cyclonedx.ComponentTypeLibrary, Name: m.path, Version: m.version, Scope: cyclonedx.ScopeRequired,
			PackageURL: "pkg:golang/" + purlPath(m.path) + "@" + url.PathEscape(m.version),
		}
		c.BOMRef = c.PackageURL
		if m.sum != "" {
			raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.sum, "h1:"))
			if err != nil || len(raw) != sha256.Size {
				return nil, fmt.Errorf("%s: the sum %q is not h1: and base64", m.path, m.sum)
			}
			c.Hashes = hashOf(raw)
			// the hash of a list of hashes, not of one file
			c.Properties = &[]cyclonedx.Property{{Name: "clustergym:go.sum", Value: m.sum}}
		}
		if len(m.licences) > 0 {
			c.Licenses = &cyclonedx.Licenses{}
		}
		for _, id := range m.licences {
			*c.Licenses = append(*c.Licenses, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
		}
		parts, uses = append(parts, c), append(uses, c.BOMRef)
	}
	needs := []cyclonedx.Dependency{{Ref: self.BOMRef, Dependencies: &uses}}
	for _, c := range parts {
		needs = append(needs, cyclonedx.Dependency{Ref: c.BOMRef})
	}
	text, err := json.MarshalIndent(cyclonedx.BOM{
		JSONSchema: "http://cyclonedx.org/schema/bom-1.6.schema.json", BOMFormat: cyclonedx.BOMFormat,
		SpecVersion: cyclonedx.SpecVersion1_6, Version: 1,
		// Two bills of equal content are the same bill: its serial number comes from the binary.
		SerialNumber: "urn:uuid:" + uuid(sum[:]),
		Metadata:     &cyclonedx.Metadata{Timestamp: s.time.Format(time.RFC3339), Component: &self},
		Components:   &parts, Dependencies: &needs,
	}, "", "  ")
	return append(text, '\n'), err
}

// hashOf returns a SHA-256 as the list that components have.
func hashOf(sum []byte) *[]cyclonedx.Hash {
	return &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
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
