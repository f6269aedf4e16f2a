"""Sign out: the page of that name, where people sign in."""

from pages.shell.doors import sign_out_page

sign_out_page()
