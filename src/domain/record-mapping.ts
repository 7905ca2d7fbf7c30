/**
 * The default export of the module that `contacts.map` names. It takes one CRM record and returns
 * the record to read in its place. It must return the same result for the same input. A record for
 * which it throws or returns nothing cannot be read.
 */
export type MapRecord = (record: Record<string, unknown>) => Record<string, unknown>;
