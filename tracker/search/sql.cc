// NULL is kept out of the logic: a clause on a metric, param, tag or dataset is an EXISTS, which is
// true or false, and NOT is written IS NOT TRUE. So a clause on something missing is false and its
// negation true, as the grammar promises. A page continues behind a row by the values of its sort
// terms (keyset), which stays right while rows are added, and which an index can enter.

#include "tracker/search/sql.h"

#include <charconv>

#include "tracker/search/order_by_ties.h"

namespace tune::tracker::search {
namespace {

std::string_view sql_operator(Comparator comparator) {
    switch (comparator) {
        case Comparator::kNotEqual: return "<>";
        case Comparator::kLess: return "<";
        case Comparator::kLessEqual: return "<=";
        case Comparator::kGreater: return ">";
        case Comparator::kGreaterEqual: return ">=";
        default: return "=";
    }
}

SqlValue to_sql(const std::string& text, bool as_integer) {
    if (!as_integer) return text;
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::string bind_value(const FilterValue& value, bool as_integer, Binder& binder) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return binder.bind(*integer);
    if (const auto* real = std::get_if<double>(&value)) return binder.bind(*real);
    if (const auto* text = std::get_if<std::string>(&value))
        return binder.bind(to_sql(*text, as_integer));
    std::string list;
    for (const std::string& text : std::get<std::vector<std::string>>(value))
        list += (list.empty() ? "(" : ", ") + binder.bind(to_sql(text, as_integer));
    return list + ")";
}

std::string compare(const std::string& left, const Clause& clause, bool as_integer,
                    Binder& binder) {
    const std::string right = bind_value(clause.value, as_integer, binder);
    switch (clause.comparator) {
        case Comparator::kLike: return "is_like(" + left + ", " + right + ")";
        case Comparator::kIlike: return "is_ilike(" + left + ", " + right + ")";
        case Comparator::kIn: return left + " IN " + right;
        case Comparator::kNotIn: return left + " NOT IN " + right;
        default: break;
    }
    return left + " " + std::string(sql_operator(clause.comparator)) + " " + right;
}

/// A NaN satisfies != and nothing else.
std::string compare_with_nan(const Facet& facet, const Clause& clause, Binder& binder) {
    const std::string value = "f." + facet.value;
    const std::string plain = compare(value, clause, false, binder);
    if (clause.entity != Entity::kMetric) return plain;
    const std::string nan = facet.is_nan ? facet.is_nan("f") : value + " IS NULL";
    if (clause.comparator == Comparator::kNotEqual) return "(" + plain + " OR " + nan + ")";
    return facet.is_nan ? "(" + plain + " AND NOT " + nan + ")" : plain;
}

Facet metric_facet(const SqlSchema& schema, Aggregate aggregate) {
    if (aggregate == Aggregate::kMin) return schema.metric_min;
    if (aggregate == Aggregate::kMax) return schema.metric_max;
    return schema.metric;
}

/// `Item`: a Clause or an OrderKey.
template <class Item>
Facet facet_of(const SqlSchema& schema, const Item& item) {
    switch (item.entity) {
        case Entity::kMetric: return metric_facet(schema, item.aggregate);
        case Entity::kParam: return schema.param;
        case Entity::kDataset: return schema.dataset(item.key);
        default: return schema.tag;
    }
}

std::string compile_clause(const SqlSchema& schema, const Clause& clause, Binder& binder) {
    if (clause.entity == Entity::kAttribute) {
        const bool as_integer = schema.is_integer_text && schema.is_integer_text(clause.key);
        return compare(schema.attribute(clause.key), clause, as_integer, binder);
    }
    const Facet facet = facet_of(schema, clause);
    const std::string from = facet.table + " f WHERE " + facet.on("f", binder.bind(clause.key));
    if (clause.comparator == Comparator::kIsNull) return "NOT EXISTS (SELECT 1 FROM " + from + ")";
    if (clause.comparator == Comparator::kIsNotNull) return "EXISTS (SELECT 1 FROM " + from + ")";
    return "EXISTS (SELECT 1 FROM " + from + " AND " + compare_with_nan(facet, clause, binder) +
           ")";
}

/// A part of the order: an expression over the inner query's columns.
struct OrderTerm {
    std::string expression;
    bool is_ascending;
};

std::string column_name(std::size_t i) {
    return "v" + std::to_string(i);
}

std::vector<OrderTerm> order_terms(const PageQuery& query) {
    std::vector<OrderTerm> terms;
    for (std::size_t i = 0; i < query.columns.size(); ++i) {
        const SortColumn& column = query.columns[i];
        const std::string value = column_name(i);
        if (column.has_nan)
            terms.push_back({sql_rank(value), true});
        else if (column.is_nullable)
            terms.push_back({"(" + value + " IS NULL)", true});
        terms.push_back({value, column.is_ascending});
    }
    return terms;
}

/// Rows behind `after`: (a > A) OR (a IS A AND b > B) OR ... with each term's direction.
std::string compile_after(const std::vector<OrderTerm>& terms, std::span<const SqlValue> after,
                          Binder& binder) {
    std::vector<std::string> bound;
    for (const SqlValue& value : after) bound.push_back(binder.bind(value));
    // Nested from the last term outwards, so that its length is linear in the number of terms.
    std::string condition;
    for (std::size_t i = terms.size(); i-- > 0;) {
        const std::string& term = terms[i].expression;
        const std::string beyond = term + (terms[i].is_ascending ? " > " : " < ") + bound[i];
        condition = condition.empty() ? beyond
                                      : "(" + beyond + " OR (" + term + " IS " + bound[i] +
                                            " AND " + condition + "))";
    }
    return condition;
}

}  // namespace

std::string Binder::bind(SqlValue value) {
    values_.push_back(std::move(value));
    return "?" + std::to_string(values_.size());
}

std::string Binder::bind(std::int64_t value) {
    return bind(SqlValue(value));
}

std::string Binder::bind(double value) {
    return bind(SqlValue(value));
}

std::string Binder::bind(std::string value) {
    return bind(SqlValue(std::move(value)));
}

std::string compile_filter(const SqlSchema& schema, const Condition& condition, Binder& binder) {
    using Kind = Condition::Kind;
    if (condition.kind == Kind::kClause) return compile_clause(schema, condition.clause, binder);
    // Not "NOT (x)": that is NULL where x is, and a comparison with nothing must become true.
    if (condition.kind == Kind::kNot)
        return "(" + compile_filter(schema, condition.parts.front(), binder) + ") IS NOT TRUE";
    const bool is_or = condition.kind == Kind::kOr;
    std::string text;
    for (const Condition& part : condition.parts)
        text += (text.empty() ? ""
                 : is_or      ? " OR "
                              : " AND ") +
                compile_filter(schema, part, binder);
    if (text.empty()) return "1";
    return is_or ? "(" + text + ")" : text;
}

SortColumn compile_order_key(const SqlSchema& schema, const OrderKey& key, std::size_t index,
                             Binder& binder) {
    SortColumn column;
    column.is_ascending = key.is_ascending;
    if (key.entity == Entity::kAttribute) {
        column.value = schema.attribute(key.key);
        return column;
    }
    const Facet facet = facet_of(schema, key);
    const std::string alias = "o" + std::to_string(index);
    // A join, not a subquery in its place: SQLite would evaluate that once per use.
    column.join =
        " LEFT JOIN " + facet.table + " " + alias + " ON " + facet.on(alias, binder.bind(key.key));
    column.value = alias + "." + facet.value;
    column.has_nan = facet.is_nan != nullptr;
    if (column.has_nan)
        column.value =
            "CASE WHEN " + facet.is_nan(alias) + " THEN 'NaN' ELSE " + column.value + " END";
    return column;
}

std::size_t token_value_count(const PageQuery& query) {
    return order_terms(query).size();
}

std::string compile_page(const PageQuery& query, std::span<const SqlValue> after,
                         std::int64_t limit, Binder& binder) {
    std::string inner = "SELECT " + query.row + " AS page_row";
    for (std::size_t i = 0; i < query.columns.size(); ++i) {
        inner += ", " + query.columns[i].value + " AS " + column_name(i);
    }
    inner += " FROM " + query.from;
    for (const SortColumn& column : query.columns) inner += column.join;
    inner += " WHERE " + query.where;
    // Said once more without OR, so that an index on the first column is entered at the page.
    const bool is_plain =
        !query.columns.empty() && !query.columns[0].has_nan && !query.columns[0].is_nullable;
    if (!after.empty() && is_plain)
        inner += " AND " + query.columns[0].value +
                 (query.columns[0].is_ascending ? " >= " : " <= ") + binder.bind(after[0]);
    const std::vector<OrderTerm> terms = order_terms(query);
    std::string outer = "SELECT page_row";
    std::string order;
    for (const OrderTerm& term : terms) {
        outer += ", " + term.expression;
        order += (order.empty() ? " ORDER BY " : ", ") + term.expression +
                 (term.is_ascending ? " ASC" : " DESC");
    }
    outer += " FROM (" + inner + ")";
    if (!after.empty()) outer += " WHERE " + compile_after(terms, after, binder);
    return outer + order + " LIMIT " + binder.bind(limit);
}

}  // namespace tune::tracker::search
