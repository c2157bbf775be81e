"""The estimators: validate, call the flow, set attributes."""
