package measure

import (
	"context"
	"errors"
	"slices"
	"time"
)

// A Subject is what can be measured in turns with others: a method in this
// process, or another program.
type Subject interface {
	Describe() (name string, group Group)

	// Open prepares for waits of the given length. Its error is why there
	// are none.
	Open(ctx context.Context, request time.Duration) (Turns, error)
}

// Turns is a Subject that is ready.
type Turns interface {
	// Take takes as many waits as late has room for, after one that does not
	// count, and returns the lateness of those that it took before ctx was
	// done, in late, and the CPU that they cost, or less than 0 if that is
	// not known.
	Take(ctx context.Context, late []time.Duration) (taken []time.Duration, cpu time.Duration, err error)

	Close() error
}

// A Plan is what [Alternate] does.
type Plan struct {
	Subjects []Subject
	Requests []time.Duration
	Rounds   int

	// Step is called before each turn.
	Step func(name string, request time.Duration)
}

// Turns returns how often Step is called, if nothing is absent.
func (p Plan) Turns() int { return len(p.Subjects) * len(p.Requests) * p.Rounds }

// WaitsFor returns how many waits are taken in a turn: as many as go into
// twenty milliseconds, but not too few to have a quantile in the end.
func WaitsFor(request time.Duration) int {
	return max(5, min(20, int(20*time.Millisecond/request)))
}

// Alternate measures all subjects with each request. They take turns, in
// another order each round, so that what else happens on the host meets all
// of them alike. When ctx is done it returns what was measured until then.
func Alternate(ctx context.Context, p Plan) ([]Row, error) {
	var rows []Row
	for _, request := range p.Requests {
		if ctx.Err() != nil {
			break
		}
		some, err := alternate(ctx, p, request)
		rows = append(rows, some...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

type contender struct {
	turns Turns
	rec   *Recorder
	cpu   time.Duration
	row   Row
}

func alternate(ctx context.Context, p Plan, request time.Duration) (rows []Row, err error) {
	all := make([]contender, len(p.Subjects))
	defer func() {
		for _, c := range all {
			if c.turns != nil {
				err = errors.Join(err, c.turns.Close())
			}
		}
	}()
	for i, s := range p.Subjects {
		c := &all[i]
		c.row.Method, c.row.Group = s.Describe()
		c.row.Request = request
		c.rec = NewRecorder(0)
		turns, err := s.Open(ctx, request)
		if err != nil {
			c.row.Absent = err.Error()
			continue
		}
		c.turns = turns
	}
	release := quiet()
	defer release()
	late := make([]time.Duration, WaitsFor(request))
	for round := range p.Rounds {
		for i := range all {
			c := &all[(i+round)%len(all)]
			if ctx.Err() != nil {
				break
			}
			p.Step(c.row.Method, request)
			if c.turns == nil {
				continue
			}
			taken, cpu, err := c.turns.Take(ctx, late)
			if err != nil && ctx.Err() == nil {
				c.row.Absent = err.Error()
				err = c.turns.Close()
				c.turns = nil
				if err != nil {
					return nil, err
				}
				continue
			}
			c.add(taken, cpu)
		}
	}
	for i := range all {
		c := &all[i]
		c.rec.fill(&c.row)
		if n := c.rec.Waits(); n > 0 && c.cpu >= 0 {
			perWait := c.cpu / time.Duration(n)
			c.row.CPU = &perWait
		}
		if c.row.Waits > 0 || c.row.Absent != "" {
			rows = append(rows, c.row)
		}
	}
	return rows, nil
}

func (c *contender) add(taken []time.Duration, cpu time.Duration) {
	if len(taken) == 0 {
		return
	}
	for _, l := range taken {
		c.rec.Record(0, int64(l))
	}
	slices.Sort(taken)
	at := func(percent int) time.Duration { return taken[(len(taken)*percent+99)/100-1] } // as the histogram has it
	round := Round{P50: at(50), P99: at(99)}
	if cpu < 0 {
		c.cpu = -1
	} else if c.cpu >= 0 {
		c.cpu += cpu
		perWait := cpu / time.Duration(len(taken))
		round.CPU = &perWait
	}
	c.row.Rounds = append(c.row.Rounds, round)
}

// Describe returns the name of the method, and its group.
func (m Method) Describe() (string, Group) { return m.Name, m.Group }

// Open opens the method in a goroutine of its own, which it keeps: what a
// thread has learned, or a ticker its phase, lasts from turn to turn.
func (m Method) Open(_ context.Context, request time.Duration) (Turns, error) {
	s := &session{
		request: request,
		orders:  make(chan order),
		done:    make(chan error, 1),
	}
	opened := make(chan error)
	go s.run(m, opened)
	if err := <-opened; err != nil {
		return nil, err
	}
	return s, nil
}

// A session is the goroutine in which a method waits.
type session struct {
	request time.Duration
	orders  chan order
	done    chan error
}

type order struct {
	ctx   context.Context
	late  []time.Duration
	taken chan turn
}

type turn struct {
	late []time.Duration
	cpu  time.Duration
}

func (s *session) run(m Method, opened chan<- error) {
	w, err := m.open(s.request)
	opened <- err
	if err != nil {
		return
	}
	for o := range s.orders {
		o.taken <- o.take(w, s.request)
	}
	s.done <- w.close()
}

func (o order) take(w waiter, request time.Duration) turn {
	begin := now()
	w.wait(begin, begin+int64(request))
	before, known := readUsage()
	n := 0
	for ; n < len(o.late) && o.ctx.Err() == nil; n++ {
		start := now()
		deadline := w.wait(start, start+int64(request))
		o.late[n] = time.Duration(now() - deadline)
	}
	after, _ := readUsage()
	if !known {
		return turn{o.late[:n], -1}
	}
	return turn{o.late[:n], after.cpu - before.cpu}
}

func (s *session) Take(ctx context.Context, late []time.Duration) ([]time.Duration, time.Duration, error) {
	o := order{ctx, late, make(chan turn)}
	s.orders <- o
	t := <-o.taken
	return t.late, t.cpu, nil
}

func (s *session) Close() error {
	close(s.orders)
	return <-s.done
}
