// In order.
