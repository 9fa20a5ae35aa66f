package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// checkBinary checks that a binary is for a target: format, machine, no library that the system would have to have, and
// what the wheel's tag promises.
func checkBinary(t target, data []byte) error {
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("the binary does not say how it was built: %w", err)
	}
	said := map[string]string{}
	for _, s := range info.Settings {
		said[s.Key] = s.Value
	}
	for _, want := range [][2]string{{"GOOS", t.os}, {"GOARCH", t.arch}, {"CGO_ENABLED", "0"}, {"-trimpath", "true"}} {
		if said[want[0]] != want[1] {
			return fmt.Errorf("built with %s=%s, want %s", want[0], said[want[0]], want[1])
		}
	}
	switch t.os {
	case "linux":
		err = checkELF(t, data)
	case "darwin":
		err = checkMachO(t, data)
	case "windows":
		err = checkPE(t, data)
	}
	if err != nil {
		return fmt.Errorf("the binary: %w", err)
	}
	return nil
}

func checkELF(t target, data []byte) error {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[t.arch]; f.Machine != want ||
		f.Class != elf.ELFCLASS64 {
		return fmt.Errorf("%v of %v, want %v of 64 bits", f.Class, f.Machine, want)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			return errors.New("it is linked against libraries of the system, want a static one")
		}
	}
	return nil
}

// Load commands of Mach-O that package macho does not name.
const (
	loadCodeSignature = 0x1d
	loadBuildVersion  = 0x32
)

func checkMachO(t target, data []byte) error {
	f, err := macho.NewFile(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if want := map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64}[t.arch]; f.Cpu != want ||
		f.Type != macho.TypeExec {
		return fmt.Errorf("%v for %v, want a program for %v", f.Type, f.Cpu, want)
	}
	oldest, signed := "", false
	for _, l := range f.Loads {
		raw := l.Raw()
		switch f.ByteOrder.Uint32(raw) {
		case loadCodeSignature:
			signed = true
		case loadBuildVersion:
			v := f.ByteOrder.Uint32(raw[12:])
			oldest = fmt.Sprintf("macosx_%d_%d_", v>>16, v>>8&0xff)
		}
	}
	if !strings.HasPrefix(t.tags[0], oldest) || oldest == "" {
		return fmt.Errorf("it starts on %s and newer, and the tag of the wheel is %s", oldest, t.tags[0])
	}
	if t.arch == "arm64" && !signed {
		return errors.New("it has no signature, without which no Mac of this kind starts it")
	}
	return nil
}

func checkPE(t target, data []byte) error {
	f, err := pe.NewFile(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if want := map[string]uint16{"amd64": pe.IMAGE_FILE_MACHINE_AMD64,
		"arm64": pe.IMAGE_FILE_MACHINE_ARM64}[t.arch]; f.Machine != want {
		return fmt.Errorf("machine %#x, want %#x", f.Machine, want)
	}
	h, ok := f.OptionalHeader.(*pe.OptionalHeader64)
	if !ok || h.Subsystem != pe.IMAGE_SUBSYSTEM_WINDOWS_CUI {
		return errors.New("it is no program of 64 bits for the console")
	}
	return nil
}

// forwarder returns a DLL whose only function is another DLL's. Nothing in it runs: the loader follows its one export.
func forwarder(name, function, to string) []byte {
	const header, at = 0x200, 0x1000 // sizes in the file and in memory
	le := binary.LittleEndian
	section := make([]byte, 40) // the directory of exports, then its tables and strings
	put := func(s string) uint32 {
		where := uint32(at + len(section))
		section = append(append(section, s...), 0)
		return where
	}
	forward, dll, exported := put(to), put(name), put(function)
	for len(section)%4 != 0 {
		section = append(section, 0)
	}
	tables := uint32(at + len(section))
	section = le.AppendUint32(section, forward)  // addresses of functions: one inside the directory is a forward
	section = le.AppendUint32(section, exported) // names
	section = le.AppendUint16(section, 0)        // ordinals
	le.PutUint32(section[12:], dll)
	le.PutUint32(section[16:], 1) // the first ordinal
	le.PutUint32(section[20:], 1) // functions
	le.PutUint32(section[24:], 1) // names
	le.PutUint32(section[28:], tables)
	le.PutUint32(section[32:], tables+4)
	le.PutUint32(section[36:], tables+8)
	size := uint32(len(section))

	var b bytes.Buffer
	dos := make([]byte, 64)
	copy(dos, "MZ")
	le.PutUint32(dos[60:], 64)
	b.Write(dos)
	b.WriteString("PE\x00\x00")
	write := func(v any) { _ = binary.Write(&b, le, v) } // a buffer takes all
	write(pe.FileHeader{
		Machine: pe.IMAGE_FILE_MACHINE_AMD64, NumberOfSections: 1, SizeOfOptionalHeader: 240,
		Characteristics: pe.IMAGE_FILE_EXECUTABLE_IMAGE | pe.IMAGE_FILE_LARGE_ADDRESS_AWARE | pe.IMAGE_FILE_DLL,
	})
	o := pe.OptionalHeader64{
		Magic: 0x20b, ImageBase: 0x180000000, SectionAlignment: at, FileAlignment: header, MajorOperatingSystemVersion: 6,
		MajorSubsystemVersion: 6, SizeOfImage: 2 * at, SizeOfHeaders: header, Subsystem: pe.IMAGE_SUBSYSTEM_WINDOWS_CUI,
		DllCharacteristics: pe.IMAGE_DLLCHARACTERISTICS_NX_COMPAT | pe.IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE,
		SizeOfStackReserve: 1 << 20, SizeOfStackCommit: at, SizeOfHeapReserve: 1 << 20, SizeOfHeapCommit: at,
		NumberOfRvaAndSizes: 16,
	}
	o.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_EXPORT] = pe.DataDirectory{VirtualAddress: at, Size: size}
	write(o)
	write(pe.SectionHeader32{
		Name: [8]uint8{'.', 'e', 'd', 'a', 't', 'a'}, VirtualSize: size, VirtualAddress: at, SizeOfRawData: header,
		PointerToRawData: header,
		Characteristics:  pe.IMAGE_SCN_CNT_INITIALIZED_DATA | pe.IMAGE_SCN_MEM_READ,
	})
	b.Write(make([]byte, header-b.Len()))
	b.Write(section)
	b.Write(make([]byte, 2*header-b.Len()))
	return b.Bytes()
}
