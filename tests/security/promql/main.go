// Reads queries as JSON lines and lists, as JSON lines, how Prometheus and VictoriaMetrics read them.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/prometheus/prometheus/promql/parser"
)

type request struct {
	Original  string `json:"original"`
	Confined  string `json:"confined"`  // empty: the query was refused
	Namespace string `json:"namespace"` // the value of the label "namespace" that every selector must require
}

type response struct {
	// Errors of Prometheus for the original query; empty if it is valid.
	Plain        string `json:"plain"`
	Experimental string `json:"experimental"`
	MetricsQL    string `json:"metricsql"`
	// Syntax tree that the confined query must have, with all experimental syntax enabled; empty if the original is invalid.
	ExpectedTree string `json:"expectedTree"`
	// How each parser that accepts the confined query reads it, by the parser's name.
	Readings map[string]reading `json:"readings"`
}

type reading struct {
	Selectors [][]string `json:"selectors"` // the matchers of each selector
	Calls     []string   `json:"calls"`     // functions and aggregations
	Tree      string     `json:"tree"`      // only of Prometheus
}

var plain = parser.NewParser(parser.Options{})
var experimental = parser.NewParser(parser.Options{
	EnableExperimentalFunctions:  true,
	ExperimentalDurationExpr:     true,
	EnableExtendedRangeSelectors: true,
	EnableBinopFillModifiers:     true,
})

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	buffered := bufio.NewWriter(os.Stdout)
	defer buffered.Flush()
	out := json.NewEncoder(buffered)
	for in.Scan() {
		var asked request
		if err := json.Unmarshal(in.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := out.Encode(answer(asked)); err != nil {
			panic(err)
		}
	}
	if err := in.Err(); err != nil {
		panic(err)
	}
}

func answer(asked request) response {
	result := response{Readings: map[string]reading{}}
	_, err := plain.ParseExpr(asked.Original)
	result.Plain = text(err)
	tree, err := experimental.ParseExpr(asked.Original)
	result.Experimental = text(err)
	if err == nil {
		addMatcher(tree, asked.Namespace)
		result.ExpectedTree = dump(tree)
	}
	_, err = parseMetricsQL(asked.Original)
	result.MetricsQL = text(err)
	if asked.Confined == "" {
		return result
	}
	for name, prometheus := range map[string]parser.Parser{"plain": plain, "experimental": experimental} {
		if tree, err := prometheus.ParseExpr(asked.Confined); err == nil {
			result.Readings[name] = readPrometheus(tree)
		}
	}
	if tree, err := parseMetricsQL(asked.Confined); err == nil {
		result.Readings["metricsql"] = readMetricsQL(tree)
	}
	return result
}

func parseMetricsQL(query string) (tree metricsql.Expr, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("panic: %v", failure)
		}
	}()
	return metricsql.Parse(query)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
