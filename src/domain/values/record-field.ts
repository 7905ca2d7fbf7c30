/**
 * Returns a field of a CRM record, by its exact name or else by its dotted path; undefined when it
 * is absent.
 */
export function fieldAt(value: unknown, field: string): unknown {
  if (isObject(value) && Object.hasOwn(value, field)) return own(value, field);
  return field.split('.').reduce<unknown>((inner, name) => {
    return isObject(inner) && Object.hasOwn(inner, name) ? own(inner, name) : undefined;
  }, value);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function own(value: object, name: string): unknown {
  return Reflect.get(value, name);
}
