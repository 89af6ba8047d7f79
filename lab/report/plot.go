package report

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Panel is one diagram; a picture has them side by side.
type Panel struct {
	Title, X, Y string
	LogX, LogY  bool
	Series      []Series
}

// A Series is one line, or one set of points with a label each.
type Series struct {
	Name   string
	Points []XY
	Labels []string // has it drawn as points
	Dots   bool     // has it drawn as points without labels
}

// An XY is a place in a Panel.
type XY struct{ X, Y float64 }

const (
	panelWidth = 15 * vg.Centimeter
	height     = 11 * vg.Centimeter

	// least is what is drawn of zero and less on a logarithmic axis.
	least = 0.01
)

// Pictured returns an error unless name is one of a picture that can be drawn.
func Pictured(name string) error {
	switch filepath.Ext(name) {
	case ".svg", ".png":
		return nil
	}
	return fmt.Errorf("a picture is .svg or .png, not %q", name)
}

// Draw writes a picture in the format that the ending of name tells.
func Draw(w io.Writer, name string, panels []Panel) error {
	if err := Pictured(name); err != nil {
		return err
	}
	width := panelWidth * vg.Length(len(panels))
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	if filepath.Ext(name) == ".svg" {
		canvas = vgsvg.New(width, height)
	} else {
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(120))}
	}
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadTop: 8, PadBottom: 8, PadLeft: 8, PadRight: 8, PadX: 16}
	for i, panel := range panels {
		if err := panel.draw(tiles.At(all, i, 0)); err != nil {
			return fmt.Errorf("draw %q: %w", panel.Title, err)
		}
	}
	_, err := canvas.WriteTo(w)
	return err
}

// draw draws the panel with its legend at the right.
func (p Panel) draw(c draw.Canvas) error {
	out := plot.New()
	out.Title.Text, out.X.Label.Text, out.Y.Label.Text = p.Title, p.X, p.Y
	out.Title.TextStyle.Font.Size = 11
	out.Title.Padding = 6
	out.X.Label.TextStyle.Font.Size, out.Y.Label.TextStyle.Font.Size = 10, 10
	out.Add(plotter.NewGrid())

	legend := plot.NewLegend()
	legend.Top = true
	legend.ThumbnailWidth = 16
	legend.TextStyle.Font.Size = 8
	for i, s := range p.Series {
		if len(s.Points) > 0 {
			if err := p.add(out, &legend, i, s); err != nil {
				return err
			}
		}
	}
	if p.LogX {
		logarithmic(&out.X)
	}
	if p.LogY {
		logarithmic(&out.Y)
	}
	legend.Draw(c)
	c = draw.Crop(c, 0, -legend.Rectangle(c).Size().X-6, 0, 0)
	out.Draw(c)
	return p.label(out, c)
}

// logarithmic makes an axis one, with a label for each power of ten.
func logarithmic(a *plot.Axis) {
	if math.IsInf(a.Min, 0) || math.IsInf(a.Max, 0) || a.Min <= 0 {
		a.Min, a.Max = least, 1
	}
	a.Min = math.Pow(10, math.Floor(math.Log10(a.Min)))
	a.Max = math.Pow(10, math.Ceil(math.Log10(a.Max)))
	if a.Max <= a.Min {
		a.Max = a.Min * 10
	}
	a.Scale = plot.LogScale{}
	a.Tick.Marker = plot.TickerFunc(func(low, high float64) (ticks []plot.Tick) {
		for x := low; x <= high*1.001; x *= 10 {
			ticks = append(ticks, plot.Tick{Value: x, Label: fmt.Sprintf("%g", math.Round(x*1e6)/1e6)})
			for k := 2.0; k < 10 && k*x < high; k++ {
				ticks = append(ticks, plot.Tick{Value: k * x})
			}
		}
		return ticks
	})
}

var colours = []color.Color{
	color.RGBA{0x1f, 0x77, 0xb4, 255}, color.RGBA{0xd6, 0x27, 0x28, 255}, color.RGBA{0x2c, 0xa0, 0x2c, 255},
	color.RGBA{0xff, 0x7f, 0x0e, 255}, color.RGBA{0x94, 0x67, 0xbd, 255}, color.RGBA{0x8c, 0x56, 0x4b, 255},
	color.RGBA{0xe3, 0x77, 0xc2, 255}, color.RGBA{0x55, 0x55, 0x55, 255}, color.RGBA{0x17, 0xbe, 0xcf, 255},
}

var dashes = [][]vg.Length{nil, {6, 2}, {2, 2}, {8, 2, 2, 2}}

func (p Panel) add(out *plot.Plot, legend *plot.Legend, i int, s Series) error {
	points := p.within(s.Points)
	colour := colours[i%len(colours)]
	if s.Labels == nil && !s.Dots {
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.Color, line.Width, line.Dashes = colour, 1.2, dashes[i/len(colours)%len(dashes)]
		out.Add(line)
		legend.Add(s.Name, line)
		return nil
	}
	if s.Labels == nil {
		all := cloud{points, colour}
		out.Add(all)
		legend.Add(s.Name, all)
		return nil
	}
	dots, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	dots.Color, dots.Shape, dots.Radius = colour, draw.CircleGlyph{}, 2.5
	out.Add(dots)
	legend.Add(s.Name, dots)
	return nil
}

// A cloud is many points, each a small square, drawn as one path: a glyph for
// each would take several times the space in a file.
type cloud struct {
	plotter.XYs
	colour color.Color
}

const pointSize = vg.Length(1.4)

// Plot draws the cloud.
func (c cloud) Plot(canvas draw.Canvas, p *plot.Plot) {
	var path vg.Path
	x, y := p.Transforms(&canvas)
	for _, at := range c.XYs {
		square(&path, x(at.X), y(at.Y))
	}
	canvas.SetColor(c.colour)
	canvas.Fill(path)
}

// DataRange is what the axes must span.
func (c cloud) DataRange() (xmin, xmax, ymin, ymax float64) { return plotter.XYRange(c.XYs) }

// Thumbnail draws one point in a legend.
func (c cloud) Thumbnail(canvas *draw.Canvas) {
	var path vg.Path
	square(&path, canvas.Center().X, canvas.Center().Y)
	canvas.SetColor(c.colour)
	canvas.Fill(path)
}

func square(path *vg.Path, x, y vg.Length) {
	const half = pointSize / 2
	path.Move(vg.Point{X: x - half, Y: y - half})
	path.Line(vg.Point{X: x + half, Y: y - half})
	path.Line(vg.Point{X: x + half, Y: y + half})
	path.Line(vg.Point{X: x - half, Y: y + half})
	path.Close()
}

// within returns the points, those that a logarithmic axis cannot show at its
// lower end.
func (p Panel) within(points []XY) plotter.XYs {
	out := make(plotter.XYs, len(points))
	for i, at := range points {
		if p.LogX {
			at.X = max(at.X, least)
		}
		if p.LogY {
			at.Y = max(at.Y, least)
		}
		out[i].X, out[i].Y = at.X, at.Y
	}
	return out
}

// label writes the labels beside their points, each at the first of several
// places where it covers no other one.
func (p Panel) label(out *plot.Plot, c draw.Canvas) error {
	const size = vg.Length(7)
	var taken []vg.Rectangle
	box := func(at vg.Point, width vg.Length) vg.Rectangle {
		return vg.Rectangle{Min: at, Max: vg.Point{X: at.X + width, Y: at.Y + size}}
	}
	area := out.DataCanvas(c)
	x, y := out.Transforms(&area)
	for _, s := range p.Series {
		if s.Labels == nil {
			continue
		}
		for _, at := range p.within(s.Points) {
			dot := vg.Point{X: x(at.X) - 2, Y: y(at.Y) - 2}
			taken = append(taken, vg.Rectangle{Min: dot, Max: vg.Point{X: dot.X + 4, Y: dot.Y + 4}})
		}
	}
	for i, s := range p.Series {
		if s.Labels == nil {
			continue
		}
		for k, at := range p.within(s.Points) {
			label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{at}, Labels: s.Labels[k : k+1]})
			if err != nil {
				return err
			}
			style := &label.TextStyle[0]
			style.Font.Size, style.Color = size, colours[i%len(colours)]
			width := style.Width(s.Labels[k])
			place := vg.Point{X: x(at.X), Y: y(at.Y)}
			for _, offset := range places(width, size) {
				b := box(place.Add(offset), width)
				free := area.Min.X <= b.Min.X && b.Max.X <= area.Max.X &&
					!slices.ContainsFunc(taken, func(t vg.Rectangle) bool { return overlap(t, b) })
				if free || label.Offset == (vg.Point{}) {
					label.Offset = offset
				}
				if free {
					break
				}
			}
			taken = append(taken, box(place.Add(label.Offset), width))
			label.Plot(area, out)
		}
	}
	return nil
}

// places returns where a label may be, from its point: right, left, above, below,
// then further away.
func places(width, size vg.Length) (offsets []vg.Point) {
	for step := vg.Length(0); step < 8; step++ {
		for _, up := range []vg.Length{-size/2 + step*size, -size/2 - step*size} {
			offsets = append(offsets, vg.Point{X: 4, Y: up}, vg.Point{X: -4 - width, Y: up}, vg.Point{X: -width / 2, Y: up + 2*size*sign(up)})
		}
	}
	return offsets
}

func sign(l vg.Length) vg.Length {
	if l < 0 {
		return -1
	}
	return 1
}

func overlap(a, b vg.Rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}

// Stairs are the points of a distribution: the share of waits, in percent,
// that were at most so late, in microseconds.
func Stairs(late []float64, waits []int64) []XY {
	var total, seen int64
	for _, n := range waits {
		total += n
	}
	points := make([]XY, 0, len(late))
	for i, n := range waits {
		seen += n
		points = append(points, XY{late[i], 100 * float64(seen) / float64(total)})
	}
	return points
}

// Names returns the names of all series that have points, sorted.
func Names(panels []Panel) []string {
	var names []string
	for _, p := range panels {
		for _, s := range p.Series {
			if len(s.Points) > 0 {
				names = append(names, strings.TrimSpace(s.Name))
			}
		}
	}
	slices.Sort(names)
	return names
}
