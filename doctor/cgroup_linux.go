package doctor

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// A cgroup is the directories of the hierarchy that limits the CPU time of
// this process: its own first, then its ancestors' up to the mount.
type cgroup struct {
	dirs   []string
	legacy bool // version 1
}

// findCgroup returns the cgroup of this process that has the cpu controller:
// that of version 1 if the controller is there, else that of version 2.
func (h host) findCgroup() (cgroup, error) {
	self, err := h.self()
	if err != nil {
		return cgroup{}, err
	}
	groups, err := self.Cgroups()
	if err != nil {
		return cgroup{}, err
	}
	mounts, err := self.MountInfo()
	if err != nil {
		return cgroup{}, err
	}
	own := -1
	for i, g := range groups {
		if slices.Contains(g.Controllers, "cpu") {
			own = i
			break
		}
		if g.HierarchyID == 0 {
			own = i
		}
	}
	if own < 0 {
		return cgroup{}, errors.New("/proc/self/cgroup names no cgroup for the CPU")
	}
	c := cgroup{legacy: groups[own].HierarchyID != 0}
	for _, m := range mounts {
		if !c.mountedBy(m) {
			continue
		}
		below, ok := under(groups[own].Path, m.Root)
		if !ok {
			continue
		}
		for dir := path.Join("/", below); ; dir = path.Dir(dir) {
			c.dirs = append(c.dirs, path.Join(m.MountPoint, dir))
			if dir == "/" {
				break
			}
		}
		if _, err := os.Stat(h.path(c.dirs[0])); err != nil {
			return cgroup{}, err
		}
		return c, nil
	}
	return cgroup{}, fmt.Errorf("the cgroup %s is not mounted here", groups[own].Path)
}

// mountedBy reports whether a mount is of the hierarchy of c.
func (c cgroup) mountedBy(m *procfs.MountInfo) bool {
	if !c.legacy {
		return m.FSType == "cgroup2"
	}
	_, cpu := m.SuperOptions["cpu"]
	return m.FSType == "cgroup" && cpu
}

// under returns the rest of a path below root, and whether it is there. A
// path with .. is outside of what this process can see.
func under(name, root string) (string, bool) {
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", false
	}
	if root == "/" {
		return name, true
	}
	rest, ok := strings.CutPrefix(name, root)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// A quota is how much CPU time a cgroup may use in each period.
type quota struct{ runtime, period time.Duration }

func (q quota) cpus() float64 { return float64(q.runtime) / float64(q.period) }

// errNoQuota is returned for a cgroup without one.
var errNoQuota = errors.New("no quota")

func (h host) quotaOf(dir string, legacy bool) (quota, error) {
	if !legacy {
		text, err := h.read(dir + "/cpu.max")
		if err != nil {
			return quota{}, err
		}
		return parseQuota(text)
	}
	runtime, err := h.read(dir + "/cpu.cfs_quota_us")
	if err != nil {
		return quota{}, err
	}
	period, err := h.read(dir + "/cpu.cfs_period_us")
	if err != nil {
		return quota{}, err
	}
	return parseQuota(runtime + " " + period)
}

// parseQuota reads cpu.max, or cfs_quota_us with cfs_period_us.
func parseQuota(text string) (quota, error) {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return quota{}, fmt.Errorf("%q is not a quota and a period", text)
	}
	period, err := strconv.ParseUint(fields[1], 10, 40)
	if err != nil {
		return quota{}, err
	}
	if period == 0 {
		return quota{}, fmt.Errorf("%q has a period of zero", text)
	}
	if fields[0] == "max" || fields[0] == "-1" {
		return quota{}, errNoQuota
	}
	runtime, err := strconv.ParseUint(fields[0], 10, 50)
	if err != nil {
		return quota{}, err
	}
	return quota{time.Duration(runtime) * time.Microsecond, time.Duration(period) * time.Microsecond}, nil
}

// tightest returns the smallest quota of c and where it is set. A cgroup
// without the file, as the root is, sets none.
func (h host) tightest(c cgroup) (q quota, dir string, err error) {
	for _, d := range c.dirs {
		found, err := h.quotaOf(d, c.legacy)
		switch {
		case errors.Is(err, errNoQuota), errors.Is(err, os.ErrNotExist):
		case err != nil:
			return quota{}, "", fmt.Errorf("%s: %w", d, err)
		case dir == "" || found.cpus() < q.cpus():
			q, dir = found, d
		}
	}
	if dir == "" {
		return quota{}, "", errNoQuota
	}
	return q, dir, nil
}

func (h host) cpuQuota() (reading, error) {
	c, err := h.findCgroup()
	if err != nil {
		return reading{}, err
	}
	r := reading{verdict: Good, value: "none", sources: c.dirs}
	q, dir, err := h.tightest(c)
	switch {
	case errors.Is(err, errNoQuota):
		return r, nil
	case err != nil:
		return reading{}, err
	}
	r.value = fmt.Sprintf("%.4g CPUs (%v of each %v), GOMAXPROCS %d", q.cpus(), q.runtime, q.period, h.maxProcs)
	r.sources = []string{dir}
	if q.cpus() <= float64(h.maxProcs) {
		r.verdict = Costs
	}
	return r, nil
}

// throttles is how often a cgroup was stopped, in how many periods in which it
// ran, and for how long.
type throttles struct {
	periods, count uint64
	stopped        time.Duration
}

// parseThrottles reads cpu.stat, and whether it holds any of this: a cgroup
// without the cpu controller has the file too.
func parseThrottles(text string) (t throttles, ok bool, err error) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		unit := time.Nanosecond
		switch key {
		case "nr_periods", "nr_throttled", "throttled_time":
		case "throttled_usec":
			unit = time.Microsecond
		default:
			continue
		}
		n, err := strconv.ParseUint(value, 10, 53)
		if err != nil {
			return throttles{}, false, err
		}
		switch key {
		case "nr_periods":
			t.periods = n
		case "nr_throttled":
			t.count, ok = n, true
		default:
			t.stopped = time.Duration(n) * unit
		}
	}
	return t, ok, nil
}

// throttling tells of the cgroup, among this process's and its ancestors',
// that was stopped most often.
func (h host) throttling() (reading, error) {
	c, err := h.findCgroup()
	if err != nil {
		return reading{}, err
	}
	worst, dir := throttles{}, ""
	for _, d := range c.dirs {
		text, err := h.read(d + "/cpu.stat")
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return reading{}, err
		}
		found, ok, err := parseThrottles(text)
		if err != nil {
			return reading{}, fmt.Errorf("%s/cpu.stat: %w", d, err)
		}
		if ok && (dir == "" || found.count > worst.count) {
			worst, dir = found, d
		}
	}
	switch {
	case dir == "":
		return h.neverThrottled(c)
	case worst.count == 0:
		return reading{verdict: Good, value: "never", sources: []string{dir + "/cpu.stat"}}, nil
	}
	return reading{
		verdict: Costs,
		value:   fmt.Sprintf("in %d of %d periods, for %v in all", worst.count, worst.periods, worst.stopped.Round(time.Millisecond)),
		sources: []string{dir + "/cpu.stat"},
	}, nil
}

// neverThrottled tells of a cgroup that counts nothing: without a quota there
// is nothing to count.
func (h host) neverThrottled(c cgroup) (reading, error) {
	_, _, err := h.tightest(c)
	switch {
	case errors.Is(err, errNoQuota):
		return reading{verdict: Good, value: "never, there is no quota", sources: c.dirs}, nil
	case err != nil:
		return reading{}, err
	}
	return reading{}, errors.New("there is a quota, but no cpu.stat that counts")
}
