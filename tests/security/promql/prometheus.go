package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

func addMatcher(tree parser.Expr, namespace string) {
	matcher := labels.MustNewMatcher(labels.MatchEqual, "namespace", namespace)
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		if selector, isSelector := node.(*parser.VectorSelector); isSelector {
			selector.LabelMatchers = append(selector.LabelMatchers, matcher)
		}
		return nil
	})
}

func readPrometheus(tree parser.Expr) reading {
	result := reading{Tree: dump(tree)}
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		switch each := node.(type) {
		case *parser.VectorSelector:
			result.Selectors = append(result.Selectors, matchers(each))
		case *parser.Call:
			result.Calls = append(result.Calls, each.Func.Name)
		case *parser.AggregateExpr:
			result.Calls = append(result.Calls, each.Op.String())
		}
		return nil
	})
	return result
}

func matchers(selector *parser.VectorSelector) []string {
	result := []string{}
	for _, each := range selector.LabelMatchers {
		result = append(result, fmt.Sprintf("%s%s%q", each.Name, each.Type, each.Value))
	}
	slices.Sort(result)
	return result
}

// dump prints a tree without parentheses and positions, so that equal texts mean equal queries.
func dump(node parser.Node) string {
	switch each := node.(type) {
	case nil:
		return ""
	case *parser.ParenExpr:
		return dump(each.Expr)
	case *parser.StepInvariantExpr:
		return dump(each.Expr)
	case *parser.UnaryExpr:
		if each.Op == parser.ADD {
			return dump(each.Expr)
		}
		if number, isNumber := unwrap(each.Expr).(*parser.NumberLiteral); isNumber {
			return fmt.Sprintf("%g", -number.Val) // without parentheses, the parser does the same
		}
		return fmt.Sprintf("(- %s)", dump(each.Expr))
	case *parser.NumberLiteral:
		return fmt.Sprintf("%g", each.Val)
	case *parser.StringLiteral:
		return fmt.Sprintf("%q", each.Val)
	case *parser.VectorSelector:
		return fmt.Sprintf("{%s}%s", strings.Join(matchers(each), ","),
			modifiers(each.Timestamp, each.StartOrEnd, each.OriginalOffset, each.Anchored, each.Smoothed, each.OriginalOffsetExpr))
	case *parser.MatrixSelector:
		return fmt.Sprintf("%s[%s %v]", dump(each.VectorSelector), each.Range, each.RangeExpr)
	case *parser.SubqueryExpr:
		return fmt.Sprintf("(subquery %s %s %s %v %v)%s", dump(each.Expr), each.Range, each.Step, each.RangeExpr, each.StepExpr,
			modifiers(each.Timestamp, each.StartOrEnd, each.OriginalOffset, false, false, each.OriginalOffsetExpr))
	case *parser.Call:
		return fmt.Sprintf("(%s%s)", each.Func.Name, dumpAll(each.Args))
	case *parser.AggregateExpr:
		parameter := ""
		if each.Param != nil {
			parameter = dump(each.Param)
		}
		return fmt.Sprintf("(%s %v %q %s %s)", each.Op, each.Without, each.Grouping, parameter, dump(each.Expr))
	case *parser.BinaryExpr:
		return fmt.Sprintf("(%s %s %v %s %s)", each.Op, matching(each.VectorMatching), each.ReturnBool, dump(each.LHS), dump(each.RHS))
	default:
		panic(fmt.Sprintf("unknown node %T", node))
	}
}

func unwrap(expression parser.Expr) parser.Expr {
	for {
		parentheses, isParentheses := expression.(*parser.ParenExpr)
		if !isParentheses {
			return expression
		}
		expression = parentheses.Expr
	}
}

func dumpAll(expressions parser.Expressions) string {
	result := ""
	for _, each := range expressions {
		result += " " + dump(each)
	}
	return result
}

func modifiers(timestamp *int64, startOrEnd parser.ItemType, offset any, anchored, smoothed bool, expression *parser.DurationExpr) string {
	at := ""
	if timestamp != nil {
		at = fmt.Sprint(*timestamp)
	}
	return fmt.Sprintf("@%s:%d:%v:%v:%v:%v", at, startOrEnd, offset, anchored, smoothed, expression)
}

func matching(vectors *parser.VectorMatching) string {
	if vectors == nil {
		return ""
	}
	fill := ""
	for _, value := range []*float64{vectors.FillValues.LHS, vectors.FillValues.RHS} {
		if value == nil {
			fill += " none"
		} else {
			fill += fmt.Sprintf(" %g", *value)
		}
	}
	// Without labels, "ignoring ()" is the same as no clause.
	return fmt.Sprintf("%v %v %q %q%s", vectors.Card, vectors.On, vectors.MatchingLabels, vectors.Include, fill)
}
