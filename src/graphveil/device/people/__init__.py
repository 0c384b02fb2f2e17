"""Who a person is: ids in one form."""
