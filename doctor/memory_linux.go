package doctor

import (
	"fmt"
)

func (h host) hugePages() (reading, error) {
	const file = "/sys/kernel/mm/transparent_hugepage/enabled"
	text, err := h.read(file)
	if err != nil {
		return reading{}, err
	}
	mode, err := chosen(text, "[]")
	if err != nil {
		return reading{}, fmt.Errorf("%s: %w", file, err)
	}
	switch mode {
	case "madvise", "never":
		return reading{verdict: Good, value: mode}, nil
	case "always":
		return reading{verdict: Costs, value: mode}, nil
	}
	return reading{value: mode}, fmt.Errorf("what %q does is not known", mode)
}

// swapping judges how readily the kernel swaps, which matters where there is
// swap.
func (h host) swapping() (reading, error) {
	swappiness, err := h.sysctl("vm.swappiness")
	if err != nil {
		return reading{}, err
	}
	r := reading{verdict: Good, value: fmt.Sprint(swappiness)}
	fs, err := h.proc()
	if err != nil {
		return r, err
	}
	if err := h.holds("/proc/swaps", "Filename"); err != nil {
		return r, err
	}
	swaps, err := fs.Swaps()
	if err != nil {
		return r, err
	}
	if len(swaps) == 0 {
		r.value += ", no swap"
		return r, nil
	}
	size, used := 0, 0
	for _, s := range swaps {
		size += s.Size
		used += s.Used
	}
	r.value += fmt.Sprintf(", %d of %d MiB of swap in use", used>>10, size>>10)
	if swappiness > 1 {
		r.verdict = Costs
	}
	return r, nil
}

func (h host) numaBalancing() (reading, error) {
	return h.offIsGood("kernel.numa_balancing")
}
