package main

import (
	"fmt"
	"slices"

	"github.com/VictoriaMetrics/metricsql"
)

func readMetricsQL(tree metricsql.Expr) reading {
	result := reading{}
	metricsql.VisitAll(tree, func(node metricsql.Expr) {
		switch each := node.(type) {
		case *metricsql.MetricExpr:
			// Filters joined by "or" are selectors of their own.
			for _, filters := range each.LabelFilterss {
				result.Selectors = append(result.Selectors, filterTexts(filters))
			}
			if len(each.LabelFilterss) == 0 {
				result.Selectors = append(result.Selectors, []string{})
			}
		case *metricsql.FuncExpr:
			result.Calls = append(result.Calls, each.Name)
		case *metricsql.AggrFuncExpr:
			result.Calls = append(result.Calls, each.Name)
		}
	})
	return result
}

func filterTexts(filters []metricsql.LabelFilter) []string {
	result := []string{}
	for _, each := range filters {
		operator := "="
		switch {
		case each.IsNegative && each.IsRegexp:
			operator = "!~"
		case each.IsNegative:
			operator = "!="
		case each.IsRegexp:
			operator = "=~"
		}
		result = append(result, fmt.Sprintf("%s%s%q", each.Label, operator, each.Value))
	}
	slices.Sort(result)
	return result
}
