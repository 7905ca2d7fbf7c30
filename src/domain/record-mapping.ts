/**
 * What the module of `contacts.map` exports as its default: one CRM record in, the record that is
 * read instead of it out. It must give the same for the same; what it throws makes a record that
 * cannot be read, and so does giving none.
 */
export type MapRecord = (record: Record<string, unknown>) => Record<string, unknown>;
