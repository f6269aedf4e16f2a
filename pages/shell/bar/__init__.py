"""The bar above every page: where one is, the labels at hand, who one is, help, and the command palette."""
