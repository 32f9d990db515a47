//! Messages of the validation layers.
//!
//! # Safety
//!
//! The messenger's callback gets a pointer to a [`MessageSink`] that its [`Messenger`] keeps alive
//! until the messenger is destroyed.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_void};
use std::collections::VecDeque;
use std::sync::Arc;

use ash::vk;

use super::result::During;
use crate::base::{fork::Life, sync::Mutex};
use crate::error::Result;

/// How serious a [`ValidationMessage`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Something that may be a fault.
    Warning,
    /// A broken rule of Vulkan.
    Error,
}

/// What a validation layer said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidationMessage {
    /// How serious it is.
    pub severity: Severity,
    /// The rule's identifier, as `VUID-vkCmdDispatch-None-08114` or `SYNC-HAZARD-READ-AFTER-WRITE`.
    pub id: String,
    /// The layer's text.
    pub text: String,
}

/// The newest messages; older ones make room.
#[derive(Debug, Default)]
pub(crate) struct MessageSink {
    messages: Mutex<VecDeque<ValidationMessage>>,
    life: Life,
}

/// Enough for a test's or a command's messages; a flood keeps its end.
const MOST_MESSAGES: usize = 1024;

impl MessageSink {
    fn push(&self, message: ValidationMessage) {
        let mut messages = self.messages.lock();
        if messages.len() == MOST_MESSAGES {
            messages.pop_front();
        }
        messages.push_back(message);
    }

    /// Takes out what is there; nothing in a forked child, where the lock may be held for ever.
    pub(crate) fn take(&self) -> Vec<ValidationMessage> {
        if self.life.ended_by_fork() {
            return Vec::new();
        }
        self.messages.lock().drain(..).collect()
    }
}

/// A live messenger of an instance.
pub(crate) struct Messenger {
    functions: ash::ext::debug_utils::Instance,
    raw: vk::DebugUtilsMessengerEXT,
    sink: Arc<MessageSink>,
}

impl Messenger {
    pub(crate) fn new(
        entry: &ash::Entry,
        instance: &ash::Instance,
        sink: &Arc<MessageSink>,
    ) -> Result<Self> {
        let functions = ash::ext::debug_utils::Instance::new(entry, instance);
        let info = create_info(sink);
        // SAFETY: the instance is alive and has the extension; the sink outlives the messenger.
        let raw = unsafe { functions.create_debug_utils_messenger(&info, None) }
            .during("vkCreateDebugUtilsMessengerEXT")?;
        Ok(Self {
            functions,
            raw,
            sink: Arc::clone(sink),
        })
    }
}

impl Drop for Messenger {
    fn drop(&mut self) {
        if self.sink.life.may_call_driver() {
            // SAFETY: the instance outlives its messenger (`Instance::drop`), which nobody else has.
            unsafe { self.functions.destroy_debug_utils_messenger(self.raw, None) };
        }
    }
}

/// What a messenger for `sink` is made of; also used while the instance itself is made.
pub(crate) fn create_info(
    sink: &Arc<MessageSink>,
) -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(
            vk::DebugUtilsMessageSeverityFlagsEXT::WARNING
                | vk::DebugUtilsMessageSeverityFlagsEXT::ERROR,
        )
        .message_type(
            vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION
                | vk::DebugUtilsMessageTypeFlagsEXT::PERFORMANCE,
        )
        .pfn_user_callback(Some(receive))
        .user_data(Arc::as_ptr(sink).cast_mut().cast::<c_void>())
}

unsafe extern "system" fn receive(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _types: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: Vulkan passes valid data for the time of the call.
    let data = unsafe { &*data };
    // SAFETY: the pointer was made in `create_info` from a sink that the messenger keeps alive.
    let sink = unsafe { &*user.cast::<MessageSink>().cast_const() };
    let severity = if severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR) {
        Severity::Error
    } else {
        Severity::Warning
    };
    // SAFETY: the fields are null or strings that end with 0.
    let id = unsafe { text(data.p_message_id_name) };
    // SAFETY: as above.
    let text = unsafe { text(data.p_message) };
    sink.push(ValidationMessage { severity, id, text });
    vk::FALSE
}

/// # Safety
///
/// `pointer` is null or a string that ends with 0.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: not null, and the caller vouches for the rest.
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}
