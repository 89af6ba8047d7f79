package mmio

var HighLow = highLow
