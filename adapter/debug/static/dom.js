// Makes and updates elements. Everything that comes from outside becomes text here, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, String(value));
  }
  node.append(...children.filter((child) => child != null).map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

// Writing only what has changed keeps the selection, the focus and the screen reader where they are.
export function text(node, value) {
  if (node.textContent !== String(value)) node.textContent = value;
}

export function mark(node, name, value) {
  if (value === null || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

// Brings a parent's children in line with items: known ones are updated where they are, so that focus stays.
export function keyed(parent, items, keyOf, make, update) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let node = known.get(key);
    known.delete(key);
    if (!node) {
      node = make(item);
      node.dataset.key = key;
    }
    update(node, item);
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  for (const node of known.values()) node.remove();
}
