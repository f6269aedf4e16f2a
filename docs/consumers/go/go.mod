module touchstone

go 1.19
