-- A list of one principal's sessions must never walk along those of all others. As an expression, this index is used by
-- whoever looks for old sessions and by nobody else.
DROP INDEX holdfast.session_by_age;
CREATE INDEX session_by_age ON holdfast.session ((updated_at + 0));
