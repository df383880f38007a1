// A client of the HTTP API that knows nothing but its OpenAPI document. Node 20 or later, no package.
export async function connect(url, token) {
  const document = await (await fetch(`${url}/api/v1/openapi.json`)).json()
  const operations = new Map()
  for (const [path, methods] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(methods))
      operations.set(operation.operationId, { path, method, parameters: operation.parameters ?? [] })

  // given: path and query parameters, and headers, by name; body: what is sent as JSON
  return async function call(name, given = {}, body) {
    const operation = operations.get(name)
    if (!operation) throw new Error(`the document has no operation ${name}`)
    const query = new URLSearchParams()
    const headers = body === undefined ? {} : { 'Content-Type': 'application/json' }
    if (token) headers.Authorization = `Bearer ${token}`
    let path = operation.path
    for (const [key, value] of Object.entries(given)) {
      const place = operation.parameters.find((each) => each.name === key)?.in
      if (place === 'path') path = path.replace(`{${key}}`, encodeURIComponent(value))
      else if (place === 'query') for (const each of [value].flat()) query.append(key, each)
      else if (place === 'header') headers[key] = value
      else throw new Error(`${name} has no parameter ${key}`)
    }
    const answer = await fetch(`${url}${path}?${query}`, {
      method: operation.method.toUpperCase(),
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const found = await answer.json()
    if (!answer.ok) throw new Error(`${found.code}: ${found.detail}`)
    return found
  }
}
