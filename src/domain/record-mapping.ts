/**
 * The default export of the module that `contacts.map` names: returns the record to read in place
 * of a CRM record, the same for the same input. If it throws or returns nothing, the record cannot
 * be read.
 */
export type MapRecord = (record: Record<string, unknown>) => Record<string, unknown>;
