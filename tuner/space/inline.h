#pragma once
// The inline grammar: one word of the command line is one parameter.
//
//   lr=1e-5..1e-1:log            float from a to b; flags after colons
//   batch=32..1024:int:log:32    int; a trailing number is the step
//   opt=sgd,adamw                choice; values are JSON where they parse as JSON, else text
//   depth=18<34<50               ordinal; `depth=18,34,50:ord` needs no quotes in a shell
//   seed==1                      const
//   momentum=0..0.99?opt=sgd     exists only if opt is sgd; `p=v|w` any of, `&` and, `p>=3`
//   momentum=0..0.99:if(opt=sgd) the same without `?`; several :if(...) are AND
//   lr=1e-5..1e-1:log@3e-4       the first value to try
//   x=-5..5:normal(0,1)          a prior: mean and deviation; the bounds may be left out:
//   x=normal(0,1)
//   lr=lognormal(1e-3,1)         median, and deviation of the logarithm
//   opt=sgd,adamw:weights(3,1)   how often each is tried before anything is known
//   scaled:=lr*sqrt(batch/256)   a derived value (expression.h)

#include <string>
#include <string_view>

#include "base/result.h"
#include "tuner/space/node.h"

namespace tune::tuner {

struct InlineParameter {
    std::string name;
    bool is_derived = false;  // then `spec` is the expression, a string
    Node spec;                // the parameter's map as in `space`; places have a column, no line
};

/// Translates one word into the tree that a study file would hold; what it means is checked with
/// the whole space. Errors: kInvalidParameterValue with the word, the column and what was expected.
[[nodiscard]] Result<InlineParameter> parse_inline_parameter(std::string_view word);

}  // namespace tune::tuner
