package mmio_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program has every accessor in it.
const program = `package main

import "github.com/precisewait/wait/mmio"

func main() {
	println(
		mmio.Readb, mmio.ReadbRelaxed, mmio.Writeb, mmio.WritebRelaxed,
		mmio.Readw, mmio.ReadwRelaxed, mmio.Writew, mmio.WritewRelaxed,
		mmio.Readl, mmio.ReadlRelaxed, mmio.Writel, mmio.WritelRelaxed,
		mmio.Readq, mmio.ReadqRelaxed, mmio.Writeq, mmio.WriteqRelaxed,
	)
}
`

// disassemble builds the program and returns the instructions of each function
// of this package, as GNU writes them, and after a tab as Go does.
func disassemble(t *testing.T, arch string, flags ...string) map[string][]string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil || runtime.GOOS == "js" {
		t.Skip("no go command here")
	}
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	require.NoError(t, os.WriteFile(source, []byte(program), 0o600))
	build := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-o", binary}, flags...), source)...)
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	const pkg = "github.com/precisewait/wait/mmio[.]"
	out, err = exec.CommandContext(t.Context(), "go", "tool", "objdump", "-gnu", "-s", "^"+pkg, binary).Output()
	require.NoError(t, err)

	functions := map[string][]string{}
	head := regexp.MustCompile(`^TEXT ` + pkg + `(\S+?)(?:[.]abi0)?\(SB\)`)
	// file:line, address, code, instruction, // and GNU's
	code := regexp.MustCompile(`^\s+\S+:\d+\s+0x\w+\s+\w+\s+(.*?)\s*// (.*?)\s*$`)
	name := ""
	for line := range strings.Lines(string(out)) {
		if m := head.FindStringSubmatch(line); m != nil {
			name = m[1]
		} else if m := code.FindStringSubmatch(line); m != nil && m[1] != "?" { // the padding
			functions[name] = append(functions[name], m[2]+"\t"+m[1])
		}
	}
	return functions
}

// compiled is what the accessors are expected to be on one architecture.
var compiled = []struct {
	name  string
	arch  string
	flags []string
	// The functions that make the accesses, with the width as %d, for 32 and 64
	// bits; those for 8 and 16 are without plain.
	loadName, storeName               string
	orderedLoadName, orderedStoreName string
	// What these consist of. A _ is any operand, and ACCESS one of those below.
	load, store               string
	orderedLoad, orderedStore string
	loads, stores             map[int]string
}{
	{
		name:     "amd64",
		arch:     "amd64",
		loadName: "load%d", storeName: "store%d",
		orderedLoadName: "load%d", orderedStoreName: "store%d",
		load:         "mov 0x8(%rsp),%rax; ACCESS; mov _,0x10(%rsp); ret_",
		store:        "mov 0x8(%rsp),%rax; mov_ 0x10(%rsp),_; ACCESS; ret_",
		orderedLoad:  "mov 0x8(%rsp),%rax; ACCESS; mov _,0x10(%rsp); ret_",
		orderedStore: "mov 0x8(%rsp),%rax; mov_ 0x10(%rsp),_; ACCESS; ret_",
		loads:        map[int]string{8: "movzbl (%rax),%eax", 16: "movzwl (%rax),%eax", 32: "mov (%rax),%eax", 64: "mov (%rax),%rax"},
		stores:       map[int]string{8: "mov %cl,(%rax)", 16: "mov %cx,(%rax)", 32: "mov %ecx,(%rax)", 64: "mov %rcx,(%rax)"},
	},
	{
		name:     "amd64 without assembly",
		arch:     "amd64",
		flags:    []string{"-tags=purego"},
		loadName: "plainLoad%d", storeName: "plainStore%d",
		orderedLoadName: "plainLoad%d", orderedStoreName: "plainStore%d",
		load:         "ACCESS; ret_",
		store:        "ACCESS; ret_",
		orderedLoad:  "ACCESS; ret_",
		orderedStore: "ACCESS; ret_",
		loads:        map[int]string{8: "movzbl (%rax),%eax", 16: "movzwl (%rax),%eax", 32: "mov (%rax),%eax", 64: "mov (%rax),%rax"},
		stores:       map[int]string{8: "mov %bl,(%rax)", 16: "mov %bx,(%rax)", 32: "mov %ebx,(%rax)", 64: "mov %rbx,(%rax)"},
	},
	{
		name:     "arm64",
		arch:     "arm64",
		loadName: "load%d", storeName: "store%d",
		orderedLoadName: "load%dOrdered", orderedStoreName: "store%dOrdered",
		load:         "ldr x0, [sp,#8]; ACCESS; str_ _1, [sp,#16]; ret",
		store:        "ldr x0, [sp,#8]; ldr_ _1, [sp,#16]; ACCESS; ret",
		orderedLoad:  "ldr x0, [sp,#8]; ACCESS; dmb oshld; eor x2, x1, x1; cbnz x2, .+0x0; str_ _1, [sp,#16]; ret",
		orderedStore: "ldr x0, [sp,#8]; ldr_ _1, [sp,#16]; dmb oshst; ACCESS; ret",
		loads:        map[int]string{8: "ldrb w1, [x0]", 16: "ldrh w1, [x0]", 32: "ldr w1, [x0]", 64: "ldr x1, [x0]"},
		stores:       map[int]string{8: "strb w1, [x0]", 16: "strh w1, [x0]", 32: "str w1, [x0]", 64: "str x1, [x0]"},
	},
}

func TestAccessorsAreOneMachineAccess(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	makesAccess := regexp.MustCompile(`mmio[.]((?:load|store|plainLoad|plainStore)\w*)`)
	for _, c := range compiled {
		t.Run(c.name, func(t *testing.T) {
			functions := disassemble(t, c.arch, c.flags...)
			check := func(accessor string, width int, callee, body, access string) {
				callee = fmt.Sprintf(callee, width)
				if width < 32 {
					callee = strings.NewReplacer("plainLoad", "load", "plainStore", "store").Replace(callee)
				}
				var callees []string
				for _, instruction := range functions[accessor] {
					if m := makesAccess.FindStringSubmatch(instruction); m != nil {
						callees = append(callees, m[1])
					}
				}
				assert.Equal(t, []string{callee}, callees, accessor)

				var gnu []string
				for _, instruction := range functions[callee] {
					before, _, _ := strings.Cut(instruction, "\t")
					gnu = append(gnu, before)
				}
				want := regexp.QuoteMeta(strings.ReplaceAll(body, "ACCESS", access))
				want = "^" + strings.ReplaceAll(want, "_", "[%a-z0-9]*") + "$"
				assert.Regexp(t, want, strings.Join(gnu, "; "), callee)
			}
			for width, letter := range map[int]string{8: "b", 16: "w", 32: "l", 64: "q"} {
				check("Read"+letter, width, c.orderedLoadName, c.orderedLoad, c.loads[width])
				check("Read"+letter+"Relaxed", width, c.loadName, c.load, c.loads[width])
				check("Write"+letter, width, c.orderedStoreName, c.orderedStore, c.stores[width])
				check("Write"+letter+"Relaxed", width, c.storeName, c.store, c.stores[width])
			}
		})
	}
}
